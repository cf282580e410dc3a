// Charts over time. What a chart draws is also a table below it, for those who cannot see it or want the numbers.
import { html, useEffect, useRef, useState } from "./html.js";
import { Loading } from "./components.js";

let loading = null;
// Loaded when the first chart is shown: the pages before it need not wait.
function loadPlot() {
  loading ??= new Promise((resolve, reject) => {
    const style = Object.assign(document.createElement("link"), { rel: "stylesheet", href: "vendor/uPlot.min.css" });
    const script = Object.assign(document.createElement("script"), { src: "vendor/uPlot.iife.min.js" });
    script.onload = () => resolve(globalThis.uPlot);
    script.onerror = () => reject(new Error("the charts could not be loaded"));
    document.head.append(style, script);
  });
  return loading;
}

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const day = (date) => date.toLocaleDateString("en-GB", { day: "numeric", month: "short" });
// The name of a place on the axis of time: a day at its beginning, else the hour.
const place = (seconds, step) => {
  const date = new Date(seconds * 1000);
  return step >= 86_400 || date.getHours() === 0 ? day(date) : date.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
};
const time = (seconds) => new Date(seconds * 1000).toLocaleString("en-GB", { dateStyle: "short", timeStyle: "short" });

// `series`: { label, values, hue, bars? }, values in step with `times` (seconds), null where there is nothing to say.
// `format` writes a value for people.
export function Chart({ title, about, times, series, format = (value) => String(value), height = 180, limit = null }) {
  const box = useRef(null);
  const [ready, setReady] = useState(false);
  const [failed, setFailed] = useState(null);
  useEffect(() => {
    let plot = null, alive = true, sized = null;
    const draw = (uPlot) => {
      if (!alive || !box.current) return;
      plot?.destroy();
      const ink = colour("--muted"), grid = colour("--line");
      const axis = { stroke: ink, grid: { stroke: grid, width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
      const lines = series.map((one) => {
        const stroke = colour(`--hue-strong-${one.hue}`);
        const look = { label: one.label, stroke, width: one.bars ? 1 : 2, points: { show: times.length < 3 }, value: (_, value) => (value === null ? "–" : format(value)) };
        return one.bars ? { ...look, fill: colour(`--hue-${one.hue}`), paths: uPlot.paths.bars({ size: [0.8, 24] }) } : { ...look, fill: `${stroke}14` };
      });
      const values = series.map((one) => one.values);
      // Half a bar stands on either side of its time.
      const beside = series.some((one) => one.bars) && times.length > 1 ? (times[1] - times[0]) / 2 : 0;
      if (limit) {
        lines.push({ label: limit.label, stroke: colour("--bad"), width: 1, dash: [6, 5], points: { show: false }, value: () => format(limit.value) });
        values.push(times.map(() => limit.value));
      }
      plot = new uPlot({
        width: Math.max(220, box.current.clientWidth), height, padding: [8, 24, 0, 0],
        cursor: { drag: { x: false, y: false }, points: { size: 7 } },
        legend: { live: true },
        scales: { x: { time: true, range: (_, low, high) => [low - beside, high + beside] }, y: { range: (_, low, high) => [0, Math.max(high * 1.08, limit ? limit.value * 1.4 : 0, 1e-9) || 1] } },
        axes: [{ ...axis, size: 28, values: (_, ticks, __, ___, step) => ticks.map((at) => place(at, step)) }, { ...axis, size: 58, values: (_, ticks) => ticks.map(format) }],
        series: [{ value: (_, value) => (value === null || value === undefined ? "" : time(value)) }, ...lines],
      }, [times, ...values], box.current);
      setReady(true);
    };
    const again = () => loadPlot().then(draw, setFailed);
    again();
    addEventListener("themechange", again);
    sized = new ResizeObserver(() => plot?.setSize({ width: Math.max(220, box.current.clientWidth), height }));
    sized.observe(box.current);
    return () => {
      alive = false;
      sized.disconnect();
      removeEventListener("themechange", again);
      plot?.destroy();
    };
  }, [times, series]);
  return html`<figure class="chart card" aria-label=${title}>
    <figcaption><h2>${title}</h2>${about && html`<p class="muted small">${about}</p>`}</figcaption>
    ${failed && html`<p class="muted">${failed.message}</p>`}
    ${!ready && !failed && html`<${Loading} what="Drawing" />`}
    <div ref=${box} class="plot" aria-hidden="true"></div>
    <${Numbers} title=${title} times=${times} series=${series} format=${format} />
  </figure>`;
}

// The hours in which anything happened, as a table that is made when somebody opens it.
function Numbers({ title, times, series, format }) {
  const [open, setOpen] = useState(false);
  const rows = open ? times.map((at, index) => [at, ...series.map((one) => one.values[index])]).filter((row) => row.slice(1).some((value) => value)) : [];
  return html`<details onToggle=${(event) => setOpen(event.target.open)}><summary>The numbers</summary>
    ${open && html`<div class="table-frame numbers" role="region" aria-label=${`${title}, the numbers`} tabindex="0"><table>
      <thead><tr><th scope="col">From</th>${series.map((one) => html`<th scope="col" class="number">${one.label}</th>`)}</tr></thead>
      <tbody>${rows.reverse().map((row) => html`<tr key=${row[0]}><td>${time(row[0])}</td>${row.slice(1).map((value) => html`<td class="number">${value === null ? "–" : format(value)}</td>`)}</tr>`)}
      ${!rows.length && html`<tr><td colspan=${series.length + 1}>Nothing was counted in this time.</td></tr>`}</tbody>
    </table></div>`}</details>`;
}

// Hours that are one point of a chart: a month hour by hour is noise.
export const stepOf = (hours) => (hours <= 24 ? 1 : hours <= 168 ? 4 : 24);
export const STEPS = { 1: "an hour", 4: "four hours", 24: "a day" };

// The counts of the service as columns, one value for each step, with nothing left out. `pick` chooses the rows.
export function columns({ since, hours, counts }, pick = () => true) {
  const step = stepOf(hours) * 3600;
  const first = Math.floor(since / step) * step;
  const times = Array.from({ length: Math.ceil((since + hours * 3600 - first) / step) }, (_, index) => first + index * step);
  const sums = times.map(() => ({ calls: 0, hits: 0, shared: 0, errors: 0, waits: 0, waitedMs: 0, pruned: 0, forgotten: 0 }));
  for (const row of counts) {
    const sum = sums[Math.floor((row.hour - first) / step)];
    if (sum && pick(row)) for (const name of Object.keys(sum)) sum[name] += row[name];
  }
  return { times, sums };
}

export const percent = (share) => `${(share * 100).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`;
