/** This browser, links that only read, the token, and the server: for the owner. */
import { html, useEffect, useState } from "../page/ui.js";
import { change as ask, get } from "../page/api.js";
import { COMMANDS } from "../page/commands.js";
import { THEMES, setTheme, theme } from "../page/colours.js";
import { Ask, Choose, Command, Empty, Foreign, Panel, Problem, useNow } from "../page/widgets.js";
import { moment, roughly } from "../page/format.js";

const DAYS = 7;

/** The whole link of a share: this page goes by this address. Pure. */
export const shareLink = (base, path) => new URL(path.replace(/^\//, ""), base).href;

/** What a share is, in words: how long it counts, and what it reads. Pure. */
export const about = (one, now) => [
  one.over || one.expires_at <= now ? "is over" : `ends in ${roughly(one.expires_at - now)}`, one.logs ? "with logs and files" : "without logs",
];

export function Settings({ change, session }) {
  return html`<main id="main"><h1>Settings</h1>
    <div class="grid two">
      <${Browser} session=${session} />
      <${Server} session=${session} change=${change} />
      ${change ? html`<${Shares} />` : html`<${Panel} title="links that only read" wide><${Empty}>Only the owner sees and makes them.<//><//>`}
    </div></main>`;
}

function Browser({ session }) {
  const [chosen, setChosen] = useState(theme());
  const choose = (word) => {
    setTheme(word);
    setChosen(word);
  };
  const [left, setLeft] = useState({});
  const leave = () => ask("DELETE", "/session").then(() => setLeft({ done: true }), (error) => setLeft({ error }));
  return html`<${Panel} title="this browser">
    <p><${Choose} label="theme" value=${chosen} options=${THEMES} onChange=${choose} /></p>
    <p>Signed in as <b><${Foreign} text=${session?.user ?? "…"} most=${60} /></b>, ${session?.scope === "change" ? "who may change everything" : "who only reads"}${session?.logs ? "" : ", without logs"}.</p>
    <p>${left.done ? html`<span role="status">Signed out. <code>bequeath web --link</code> prints a link that signs in.</span>` : html`<button type="button" onClick=${leave}>sign out</button>`}</p>
    <${Problem} error=${left.error} /><//>`;
}

function Server({ session, change }) {
  const [open, setOpen] = useState(false);
  return html`<${Panel} title="this server">
    <dl class="pairs"><div><dt>version</dt><dd><${Foreign} text=${session?.version ?? "…"} /></dd></div>
      <div><dt>address</dt><dd><${Foreign} text=${document.baseURI} /></dd></div>
      <div><dt>interface</dt><dd><a href="api/v1/openapi.json">OpenAPI</a>, <a href="metrics">metrics</a></dd></div></dl>
    ${change && html`<p class="as-command"><span class="quiet">the token for scripts is on no page:</span> <${Command} text=${COMMANDS.web("--token")} /></p>
      <p><button type="button" onClick=${() => setOpen(true)}>new token…</button></p>`}
    ${open && html`<${Ask} title="Make a new token?" word="make it" danger onClose=${() => setOpen(false)} command=${COMMANDS.web("--new-token")}
      act=${async () => {
        await ask("POST", "/token");
        return "All browsers are signed out, this one too; `bequeath web --link` prints a link that signs in.";
      }}><p>All browsers are signed out, and scripts need the new one. Links that only read count on.</p><//>`}<//>`;
}

function Shares() {
  const [state, setState] = useState({});
  const [open, setOpen] = useState(null);
  const now = useNow(30);
  const read = () => get("/shares").then(({ shares }) => setState({ shares }), (error) => setState({ error }));
  useEffect(() => {
    read();
  }, []);
  const close = () => {
    setOpen(null);
    read();
  };
  const { shares, error } = state;
  return html`<${Panel} title="links that only read" wide side=${html`<button type="button" class="small" onClick=${() => setOpen({})}>make one…</button>`}>
    <${Problem} error=${error} />
    ${shares && (shares.length === 0 ? html`<${Empty}>There are none. Whoever gets one may look at all experiments of yours, and change nothing.<//>`
      : html`<div class="scroll" tabindex="0" role="region" aria-label="links that only read"><table class="list"><thead><tr><th scope="col">name</th><th scope="col">made</th><th scope="col">until</th><th scope="col">reads</th><th scope="col"><span class="hidden">take back</span></th></tr></thead>
        <tbody>${shares.map((one) => html`<tr key=${one.share}><th scope="row"><${Foreign} text=${one.share} /></th><td>${moment(one.created_at)}</td><td title=${moment(one.expires_at)}>${about(one, now)[0]}</td><td>${about(one, now)[1]}</td>
          <td><button type="button" class="small" onClick=${() => setOpen({ revoke: one.share })}>take back…</button></td></tr>`)}</tbody></table></div>`)}
    <p class="as-command"><span class="quiet">the same as</span> <${Command} text=${COMMANDS.web("--shares")} /></p>
    ${open && (open.revoke ? html`<${Revoke} name=${open.revoke} onClose=${close} />` : html`<${Make} onClose=${close} />`)}<//>`;
}

const Revoke = ({ name, onClose }) => html`<${Ask} title="Take this link back?" word="take back" danger onClose=${onClose} command=${COMMANDS.revoke(name)}
  act=${async () => {
    await ask("DELETE", `/shares/${encodeURIComponent(name)}`);
    return "It counts no more: who was signed in by it is out.";
  }}><p><b><${Foreign} text=${name} /></b>, with all that was signed in by it, at once.</p><//>`;

function Make({ onClose }) {
  const [name, setName] = useState("");
  const [days, setDays] = useState(String(DAYS));
  const [logs, setLogs] = useState(false);
  const many = Number(days);
  const fits = /^[\w-][\w.-]{0,59}$/.test(name) && many > 0;
  return html`<${Ask} title="Make a link that only reads" word="make it" disabled=${!fits} onClose=${onClose} command=${fits ? COMMANDS.share(name, many, logs) : ""}
    act=${async () => {
      const told = await ask("POST", "/shares", { name, days: many, logs });
      return html`This is the only time that it is shown: <${Command} text=${shareLink(document.baseURI, told.path)} />`;
    }}>
    <p>Whoever has it may look at all experiments of yours. Parameters and results are shown as they are.</p>
    <label>name, for the list <input type="text" required maxlength="60" value=${name} onInput=${(event) => setName(event.target.value.trim())} autocomplete="off" /></label>
    <label>days <input type="number" required min="0.01" max="3650" step="any" value=${days} onInput=${(event) => setDays(event.target.value)} /></label>
    <label><input type="checkbox" checked=${logs} onChange=${(event) => setLogs(event.target.checked)} /> it reads logs and files of trials, too</label><//>`;
}
