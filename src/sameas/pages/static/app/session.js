// Who is signed in, and what this service has: read once at the start, and again after signing in or out.
import { createStore } from "./store.js";

export const session = createStore({ ready: false, signedIn: true, auth: "single-tenant", actor: "local", roles: [] });
