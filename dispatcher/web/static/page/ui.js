/** Preact with htm, as the page uses them. */
import { h } from "../vendor/preact.js";
import htm from "../vendor/htm.js";

export { Fragment, createContext, render } from "../vendor/preact.js";
export {
  useContext, useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState,
} from "../vendor/hooks.js";

export const html = htm.bind(h);
