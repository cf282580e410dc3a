// A run while it works: how far it is, what it found so far, what it waits for. Events come as they happen and may come
// again after a reconnection; what is shown is put together from them a few times a second.
import { useEffect, useRef, useState } from "./html.js";
import { get, listen } from "./api.js";
import { isUnderWay } from "./graph_model.js";

export const STAGES = ["chunking", "property_scoping", "entity_extraction", "entity_resolution", "relation_extraction", "grounding", "serialization"];
const EVERY = 250;

export function emptyProgress() {
  return { progress: 0, stages: {}, stage: "", entities: new Map(), relations: new Map(), notices: [], skew: Infinity, lastNumber: 0, ended: null, cached: 0, found: 0 };
}

// The progress after an event; it is changed in place, because thousands come.
export function heard(now, event) {
  if (event.sequenceNumber) {
    if (event.sequenceNumber <= now.lastNumber) return now;
    now.lastNumber = event.sequenceNumber;
  }
  now.progress = Math.max(now.progress, event.progress ?? 0);
  if (event.timestamp) now.skew = Math.min(now.skew, Date.now() - event.timestamp);
  switch (event.type) {
    case "extraction_started":
      // A later attempt goes on in the same journal; what was found before comes again.
      now.ended = null;
      break;
    case "stage_started":
      now.stage = event.stage;
      now.stages[event.stage] = { percent: 0, ...now.stages[event.stage], state: "running" };
      break;
    case "stage_progress":
      now.stages[event.stage] = { state: "running", percent: event.percent, done: event.itemsProcessed, total: event.itemsTotal };
      break;
    case "stage_completed":
      now.stages[event.stage] = { ...now.stages[event.stage], state: event.partial ? "partial" : "done", percent: 100, ms: event.durationMs, items: event.itemCount };
      break;
    case "chunk_completed":
      // A chunk is completed once in every stage.
      if (event.cached && event.stage === "entity_extraction") now.cached += 1;
      break;
    case "entity_found": {
      const { text, types = [], start, end, kind } = event.entity;
      if (kind === "literal" || !types.length) break;
      const id = `${text.toLocaleLowerCase()} ${types[0]}`;
      const known = now.entities.get(id) ?? { id, name: text, types, mentions: [], confidence: event.confidence };
      if (!known.mentions.some((one) => one.start === start && one.end === end)) known.mentions.push({ start, end, text });
      now.entities.set(id, known);
      now.found += 1;
      break;
    }
    case "relation_found": {
      const { subject, predicate, object, evidence } = event.relation;
      const id = (mention) => `${mention.text.toLocaleLowerCase()} ${mention.types?.[0]}`;
      const value = object.kind === "literal" ? { value: object.value || object.text, datatype: object.datatype ?? "" } : null;
      const key = `${id(subject)} ${predicate} ${value ? value.value : id(object)}`;
      now.found += 1;
      now.relations.set(key, { subject: id(subject), predicate, object: value ? "" : id(object), value, evidence: [evidence], confidence: event.confidence });
      break;
    }
    case "rate_limited":
      notice(now, event.type, `The model's server lets ${STOPPED[event.reason] ?? "nothing more"} through for ${seconds(event.waitMs)}; waiting.`, event.timestamp + event.waitMs);
      break;
    case "budget_warning":
      notice(now, event.type, `The budget is nearly spent: ${event.message.replace(/\.$/, "")}.`);
      break;
    case "timeout_warning": {
      const stage = sentence(event.stage.replaceAll("_", " "));
      if (event.limit === "hard") notice(now, `${event.type} hard`, `${stage} took longer than ${seconds(event.timeoutMs)} for a part of the text: that part was given up.`);
      else notice(now, event.type, `${stage} takes longer than ${seconds(event.timeoutMs)}; it goes on.`);
      break;
    }
    case "error_recoverable": {
      const { code, message, retryAfterMs } = event.error;
      const text = `${sentence(message)}${retryAfterMs ? `; tried again after ${seconds(retryAfterMs)}` : ""}.`;
      // That a server is left alone is told beside the last failure, whose own wait is shorter.
      if (code === "circuit_open") notice(now, code, text, event.timestamp + retryAfterMs);
      else notice(now, event.type, text);
      break;
    }
    case "extraction_completed":
      now.ended = { kind: "completed", outcome: event.summary.outcome };
      now.progress = 1;
      break;
    case "extraction_failed":
      now.ended = { kind: "failed", text: event.error.message };
      break;
    case "extraction_cancelled":
      now.ended = { kind: "cancelled", text: event.reason };
      break;
    default:
  }
  return now;
}

const STOPPED = { tokens: "no more tokens", requests: "no more requests" };
const seconds = (ms) => `${Math.max(1, Math.round(ms / 1000))} s`;
const sentence = (text) => `${text.charAt(0).toLocaleUpperCase()}${text.slice(1).replace(/\.$/, "")}`;

// One of each kind, the last: who waits for a server is still near the end of a budget.
function notice(now, about, text, until = Infinity) {
  now.notices = [...now.notices.filter((one) => one.about !== about), { kind: "warn", about, text, until }];
}

// What still holds, by the clock of the service.
export const currentNotices = (progress) => progress.notices.filter((one) => one.until > Date.now() - progress.skew);

// Whether a run has ended, or was deleted. Where the service does not answer nobody knows, and it is asked again.
async function isOver(key) {
  try {
    return !isUnderWay(await get(`/api/v1/runs/${key}`));
  } catch (error) {
    return error.status >= 400 && error.status < 500 && error.status !== 429;
  }
}

// { progress, connection } of a run under way; `onEnd` is called once, when it has ended.
export function useLiveRun(key, isLive, onEnd) {
  const [shown, setShown] = useState({ progress: emptyProgress(), connection: "open", turn: 0 });
  const ended = useRef(false);
  useEffect(() => {
    if (!isLive) return undefined;
    ended.current = false;
    const now = emptyProgress();
    let connection = "connecting", isDirty = true;
    let closed = false;
    // The last event comes a moment before the result is accepted: the run itself says when it is.
    const finish = async () => {
      if (ended.current) return;
      ended.current = true;
      for (let wait = 50; !closed && !(await isOver(key)); wait = Math.min(2000, wait * 2)) {
        await new Promise((resume) => setTimeout(resume, wait));
      }
      if (!closed) onEnd();
    };
    let told = 0;
    const flush = () => {
      const notices = currentNotices(now).length;
      if (isDirty || notices !== told) setShown((before) => ({ progress: now, connection, turn: before.turn + 1 }));
      isDirty = false;
      told = notices;
    };
    const timer = setInterval(flush, EVERY);
    const close = listen(`/api/v1/runs/${key}/events`, {
      onEvent(event) {
        heard(now, event);
        isDirty = true;
      },
      async onState(state) {
        connection = state;
        isDirty = true;
        flush();
        if (state === "ended") finish();
        // The stream may be over because the run is: the run itself says so.
        if (state === "waiting" && (await isOver(key))) {
          close();
          finish();
        }
      },
    });
    return () => {
      closed = true;
      clearInterval(timer);
      close();
    };
  }, [key, isLive]);
  return shown;
}

// What was found so far, as the service would give a finished run.
export function liveView(view, progress) {
  const entities = [...progress.entities.values()];
  const known = new Set(entities.map((entity) => entity.id));
  const relations = [...progress.relations.values()].filter((relation) => known.has(relation.subject) && (relation.value || known.has(relation.object)));
  return { ...view, entities, relations, rejected: [], decided: {}, leastConfidence: 0 };
}
