/** What the server computes for a picture, asked for again now and then. */
import { useEffect, useState } from "./ui.js";
import { get } from "./api.js";

/**
 * The answer to a path: `data`, or `error`, or `busy` while the first one comes.
 * @param {any} version asks again when it changes; what was there stays until the next answer
 */
export function usePlot(path, version) {
  const [state, setState] = useState({});
  useEffect(() => {
    let ended = false;
    setState((before) => (before.path === path ? before : { path, busy: true }));
    get(path).then(
      (data) => ended || setState({ path, data }),
      (error) => ended || setState({ path, error }),
    );
    return () => {
      ended = true;
    };
  }, [path, version]);
  return state.path === path ? state : { busy: true };
}
