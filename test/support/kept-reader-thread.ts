import "../../src/store/sqlite/reader-worker.ts";
import { ended } from "./kept-reader.ts";

/** The other end of `kept-reader.ts`. */
declare const self: Worker;

process.exit = (() => self.postMessage(ended)) as typeof process.exit;
