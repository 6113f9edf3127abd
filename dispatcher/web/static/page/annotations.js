/** Notes, tags and stars: shown as text, given and taken by click, beside the command that does the same. */
import { html, useState } from "./ui.js";
import { change as changeIt, of } from "./api.js";
import { COMMANDS } from "./commands.js";
import { link } from "./route.js";
import { Ask, Foreign, Panel } from "./widgets.js";
import { several, time } from "./format.js";

/** Below an experiment's address: a trial, or null for the experiment itself. */
const place = (trial) => (trial === null ? "" : `/trials/${trial}`);
const words = (text) => text.split(/[\s,]+/).filter(Boolean);
const whose = (experiment, trials) => (trials[0] === null ? experiment : trials.length === 1 ? `trial ${trials[0]}` : several(trials.length, "trial"));

/** Star and tags; `to` makes the address that a tag leads to. */
export const Marks = ({ tags, starred, to }) => html`${starred ? html`<span class="star" title="starred" role="img" aria-label="starred">★</span> ` : ""}
  ${(tags ?? []).map((one) => html`${to ? html`<a class="tag" href=${to(one)}><${Foreign} text=${one} most=${64} /></a>` : html`<span class="tag"><${Foreign} text=${one} most=${64} /></span>`} `)}`;

/** The trials of an experiment that have a tag. */
export const tagged = (experiment) => (tag) => link(experiment, "trials", { where: `tag=${tag}` });

/** A button that gives a star or takes it; what it stands for is its title. */
export function Star({ experiment, trial = null, starred, onDone }) {
  const [error, setError] = useState(null);
  const command = COMMANDS.star(experiment, trial, starred);
  const act = async () => {
    try {
      await changeIt(starred ? "DELETE" : "PUT", of(experiment, `${place(trial)}/star`));
      setError(null);
      onDone?.();
    } catch (failed) {
      setError(failed);
    }
  };
  const name = `star of ${trial === null ? experiment : `trial ${trial}`}`;
  return html`<button type="button" class="plain star" aria-pressed=${Boolean(starred)} aria-label=${name} title=${error ? `${error.message} ${error.hint}` : command} onClick=${act}>${error ? "⚠" : starred ? "★" : "☆"}</button>`;
}

/** Buttons that change what these trials, or `[null]`, the experiment, were given. */
export function Annotate({ experiment, trials, starred, onDone, star = true }) {
  const [open, setOpen] = useState("");
  const close = () => {
    setOpen("");
    onDone?.();
  };
  const Dialog = { note: Note, tags: Tags, star: StarAll }[open];
  const button = (word, text, title) => html`<button type="button" title=${title} onClick=${() => setOpen(word)}>${text}</button>`;
  return html`<span class="buttons">${button("note", "note…", "write a note")}${button("tags", "tags…", "give tags, or take them away")}${star && button("star", starred ? "unstar…" : "star…", "give a star, or take it away")}
    ${Dialog && html`<${Dialog} experiment=${experiment} trials=${trials} starred=${starred} onClose=${close} />`}</span>`;
}

const each = async (trials, act) => {
  for (const trial of trials) await act(trial);
};

function Note({ experiment, trials, onClose }) {
  const [text, setText] = useState("");
  const tidy = text.trim();
  return html`<${Ask} title=${`A note beside ${whose(experiment, trials)}`} word="write" onClose=${onClose} disabled=${!tidy}
    command=${tidy ? trials.map((trial) => COMMANDS.note(experiment, trial, tidy)).join("\n") : ""}
    act=${async () => {
      await each(trials, (trial) => changeIt("POST", of(experiment, `${place(trial)}/notes`), { text: tidy }));
      return "It is written down.";
    }}><label class="block">plain text, at most 2,000 characters
      <textarea rows="5" maxlength="2000" value=${text} onInput=${(event) => setText(event.target.value)}></textarea></label><//>`;
}

function Tags({ experiment, trials, onClose }) {
  const [add, setAdd] = useState("");
  const [remove, setRemove] = useState("");
  const wish = { add: words(add), remove: words(remove) };
  const nothing = wish.add.length + wish.remove.length === 0;
  const field = (label, value, set) => html`<p><label>${label} <input type="text" value=${value} onInput=${(event) => set(event.target.value)} autocomplete="off" spellcheck=${false} /></label></p>`;
  return html`<${Ask} title=${`Tags of ${whose(experiment, trials)}`} word="change" onClose=${onClose} disabled=${nothing}
    command=${nothing ? "" : trials.map((trial) => COMMANDS.tag(experiment, trial, wish)).join("\n")}
    act=${async () => {
      await each(trials, (trial) => changeIt("PATCH", of(experiment, `${place(trial)}/tags`), wish));
      return "The tags are changed.";
    }}>${field("give", add, setAdd)}${field("take away", remove, setRemove)}
    <p class="quiet">Several stand with spaces between them.${trials[0] === null ? " dataset:NAME says what the experiment is about." : ""}</p><//>`;
}

const StarAll = ({ experiment, trials, starred, onClose }) => html`<${Ask} title=${starred ? `Take the star of ${whose(experiment, trials)} away?` : `A star for ${whose(experiment, trials)}?`} word=${starred ? "unstar" : "star"} onClose=${onClose}
  command=${trials.map((trial) => COMMANDS.star(experiment, trial, starred)).join("\n")}
  act=${async () => {
    await each(trials, (trial) => changeIt(starred ? "DELETE" : "PUT", of(experiment, `${place(trial)}/star`)));
    return starred ? "The star is gone." : "It has a star.";
  }}><//>`;

/** What people gave a trial or the experiment; nothing where there is nothing and one may only read. */
export function Given({ experiment, trial = null, tags = [], starred = false, notes = [], change, onDone, wide }) {
  const [going, setGoing] = useState(null);
  if (!change && !starred && tags.length + notes.length === 0) return null;
  const close = () => {
    setGoing(null);
    onDone?.();
  };
  return html`<${Panel} title="notes and tags" wide=${wide} side=${change && html`<${Annotate} experiment=${experiment} trials=${[trial]} starred=${starred} onDone=${onDone} />`}>
    ${starred || tags.length ? html`<p><${Marks} tags=${tags} starred=${starred} to=${trial === null ? undefined : tagged(experiment)} /></p>` : ""}
    ${notes.length === 0 ? html`<p class="quiet">No notes.</p>` : html`<ul class="notes">${notes.map((one) => html`<li key=${one.number}>
      <div class="note"><${Foreign} text=${one.text} /></div>
      <span class="quiet">${time(one.at)}</span> ${change && html`<button type="button" class="small" aria-label=${`remove note ${one.number}`} onClick=${() => setGoing(one)}>remove…</button>`}</li>`)}</ul>`}
    ${going && html`<${Ask} title="Take this note away?" word="remove" danger onClose=${close} command=${COMMANDS.removeNote(experiment, trial, going.number)}
      act=${async () => {
        await changeIt("DELETE", of(experiment, `${place(trial)}/notes/${going.number}`));
        return "It is gone.";
      }}><div class="note"><${Foreign} text=${going.text} /></div><//>`}<//>`;
}
