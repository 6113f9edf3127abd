/** Asks for the data while the rest of the page is still being loaded. */
import { ahead, of } from "./api.js";
import { readPath } from "./route.js";

const base = new URL(document.baseURI).pathname;
const where = readPath(location.pathname.startsWith(base) ? location.pathname.slice(base.length) : location.pathname);
ahead("/session");
if (where.experiment) {
  ahead(of(where.experiment, "/table"));
  ahead(of(where.experiment));
} else if (where.page === "experiments") ahead("/experiments");
