import { createMemoryLog } from "../../src/store/memory-log.ts";
import { streamLogContract } from "../contract/stream/stream-log.ts";
import { createFakeClock } from "../support/fake-clock.ts";

streamLogContract("the memory's log", async () => ({ log: createMemoryLog(createFakeClock()), async end() {} }));
