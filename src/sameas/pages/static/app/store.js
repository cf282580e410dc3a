// A value that pages watch. What is seen in several places (who is signed in, what is selected) lives in one of these.
import { useEffect, useState } from "./html.js";

export function createStore(initial) {
  let value = initial;
  const watchers = new Set();
  return {
    get: () => value,
    set(next) {
      value = typeof next === "function" ? next(value) : next;
      for (const watcher of [...watchers]) watcher(value);
    },
    watch(watcher) {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
  };
}

export function useStore(store) {
  const [value, setValue] = useState(store.get());
  useEffect(() => {
    setValue(store.get());
    return store.watch(setValue);
  }, [store]);
  return value;
}

// Who is signed in, and what this service has: read once at the start, and again after signing in or out.
export const session = createStore({ ready: false, signedIn: true, auth: "single-tenant", actor: "local", roles: [] });
