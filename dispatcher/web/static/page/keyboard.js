/** Keys of all pages: `g` and a letter goes to a page, `/` to the filter, `?` lists them. */
import { html, useEffect, useLayoutEffect, useRef, useState } from "./ui.js";
import { PAGES, home, link, trialLink } from "./route.js";
import { go } from "./navigation.js";

const typing = (target) => target instanceof Element && target.closest("input, textarea, select, dialog") !== null;

export function Keys({ where }) {
  const [shown, setShown] = useState(false);
  const waiting = useRef(-Infinity);
  const dialog = useRef(null);
  useEffect(() => {
    const show = () => setShown(true);
    const key = (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
      if (event.timeStamp - waiting.current < 2500) {
        waiting.current = -Infinity;
        const page = PAGES.find(([, , letter]) => letter === event.key);
        if (event.key === "e") go(home());
        else if (page && where.experiment) go(link(where.experiment, page[0]));
        else return;
        event.preventDefault();
      } else if (event.key === "g") waiting.current = event.timeStamp;
      else if (event.key === "?") setShown(true);
      else if (event.key === "/") {
        const filter = document.querySelector("[data-filter]");
        if (!filter) return;
        event.preventDefault();
        filter.focus();
        filter.select();
      } else if (where.page === "trial" && (event.key === "[" || event.key === "]")) {
        go(trialLink(where.experiment, Math.max(0, where.trial + (event.key === "[" ? -1 : 1))));
      }
    };
    document.addEventListener("keydown", key);
    document.addEventListener("keys", show);
    return () => {
      document.removeEventListener("keydown", key);
      document.removeEventListener("keys", show);
    };
  }, [where.page, where.experiment, where.trial]);
  useLayoutEffect(() => {
    if (shown) dialog.current.showModal();
  }, [shown]);
  if (!shown) return null;
  const rows = [
    ...PAGES.map(([, title, letter]) => [`g ${letter}`, title]), ["g e", "all experiments"], ["/", "filter"],
    ["j k ↑ ↓", "rows of a table; trials of a picture"], ["Enter", "open"], ["x", "mark for comparing"],
    ["c", "compare what is marked"], ["+ − 0", "zoom a picture; all of it"], ["[ ]", "trial before, trial after"], ["b", "look back: the search as it was"], [", .", "back and on in time"], ["p", "let time go on, or stop it"], ["?", "this list"],
  ];
  return html`<dialog ref=${dialog} onClose=${() => setShown(false)} aria-labelledby="keys-title">
    <h2 id="keys-title">Keys</h2>
    <table class="plain"><tbody>${rows.map(([keys, what]) => html`<tr><th scope="row"><kbd>${keys}</kbd></th><td>${what}</td></tr>`)}</tbody></table>
    <form method="dialog" class="buttons"><button>close</button></form>
  </dialog>`;
}
