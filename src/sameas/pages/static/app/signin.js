// Signing in where the service asks for a credential. The key or token is sent once; after that an HttpOnly cookie
// stands for it, which no script can read.
import { html, useState } from "./html.js";
import { del, get, post } from "./api.js";
import { Failure, Field, Unavailable, complain } from "./components.js";
import { go } from "./router.js";
import { session } from "./store.js";

// Asks who is signed in; where nobody is, the sign-in is shown.
export async function readSession() {
  try {
    const now = await get("/api/v1/session");
    session.set({ ready: true, ...now });
  } catch (error) {
    session.set({ ready: true, signedIn: false, auth: "", actor: "", roles: [], problem: error });
  }
}

export async function signOut() {
  try {
    await del("/api/v1/session");
  } catch (error) {
    complain(error);
    return;
  }
  go("/");
  await readSession();
}

// Who is signed in is not known: the service did not say.
export function Unreached({ problem }) {
  const [busy, setBusy] = useState(false);
  const again = () => {
    setBusy(true);
    readSession().finally(() => setBusy(false));
  };
  return html`<${Unavailable} title="The service is not there" error=${problem}><button type="button" disabled=${busy} onClick=${again}>Try again</button><//>`;
}

export function SignIn() {
  const now = session.get();
  const [credential, setCredential] = useState("");
  const [kind, setKind] = useState(now.auth.includes("api-key") ? "api-key" : "jwt");
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const enter = async (event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      await post("/api/v1/session", { kind, credential: credential.trim() });
      setCredential("");
      await readSession();
    } catch (refusal) {
      setError(refusal);
    } finally {
      setBusy(false);
    }
  };
  return html`<form class="card signin" onSubmit=${enter}>
    <h1>Sign in</h1>
    <p class="muted">This service shows each tenant its own work only. Your key or token stays out of reach of scripts.</p>
    ${now.auth === "jwt,api-key" && html`<${Field} label="With"><select value=${kind} onChange=${(event) => setKind(event.target.value)}>
      <option value="api-key">an API key</option><option value="jwt">a token</option></select><//>`}
    <${Field} label=${kind === "jwt" ? "Token" : "API key"}><input type="password" name="credential" autocomplete="current-password" required value=${credential} onInput=${(event) => setCredential(event.target.value)} /><//>
    <${Failure} error=${error} />
    <button type="submit" class="primary" disabled=${busy}>Sign in</button>
  </form>`;
}
