/** One system call in the output of `strace -f -y`. */
export interface Call {
  readonly name: string;
  /** What its file descriptor stands for: a path, or `socket:[1234]`. */
  readonly target: string;
  /** Everything after the descriptor, with the result. */
  readonly rest: string;
  /** Lines of the trace; a call that another thread has interrupted ends later than it begins. */
  readonly beganAt: number;
  readonly endedAt: number;
}

const whole = /^(\d+)\s+(\w+)\(\d+<(.*?)>(.*)$/;
const resumed = /^(\d+)\s+<\.\.\. (\w+) resumed>(.*)$/;
const unfinished = /<unfinished \.\.\.>$/;

/** Reads the calls on file descriptors, in the order in which they began. */
export function readTrace(text: string): Call[] {
  const calls: Call[] = [];
  /** By thread: index of the call that has not returned. */
  const open = new Map<string, number>();
  for (const [line, written] of text.split("\n").entries()) {
    const [, thread = "", name = "", target = "", rest = ""] = whole.exec(written) ?? [];
    if (name !== "") {
      if (unfinished.test(rest)) open.set(thread, calls.length);
      calls.push({ name, target, rest: rest.replace(unfinished, ""), beganAt: line, endedAt: line });
      continue;
    }
    const [, thread2 = "", , more = ""] = resumed.exec(written) ?? [];
    const index = open.get(thread2);
    const call = index === undefined ? undefined : calls[index];
    if (index === undefined || call === undefined) continue;
    open.delete(thread2);
    calls[index] = { ...call, rest: call.rest + more, endedAt: line };
  }
  return calls;
}

const isReceive = ({ name, target }: Call) => /^(recvfrom|recvmsg|read)$/.test(name) && target.startsWith("socket:");
const isSend = ({ name, target }: Call) => /^(sendto|sendmsg|writev?)$/.test(name) && /^(socket|TCP)/.test(target);
const isLog = ({ target }: Call) => target.endsWith("-wal");
const isWrite = ({ name }: Call) => /^p?writev?(64|2)?$/.test(name);
const isSync = ({ name, rest }: Call) => /^f(data)?sync$/.test(name) && / = 0$/.test(rest);

export interface Judged {
  /** Answers 202 to requests with a marker. */
  readonly answers: number;
  readonly faults: readonly string[];
}

/**
 * Whether each 202 was sent after its event was durable: the marker that is in the request was written into the log, and a
 * sync of the log, begun after the last write into it, has returned before the answer goes out.
 *
 * @param marker finds the marker of a request, in the request and in what is written
 */
export function judgeTrace(calls: readonly Call[], marker: RegExp): Judged {
  const asked = new Map<string, { mark: string; at: number }>();
  const faults: string[] = [];
  let answers = 0;
  for (const call of calls) {
    const mark = marker.exec(call.rest)?.[0];
    if (isReceive(call) && mark !== undefined) asked.set(call.target, { mark, at: call.endedAt });
    const request = asked.get(call.target);
    if (!request || !isSend(call) || !call.rest.includes('"HTTP/1.1 202 ')) continue;
    answers += 1;
    asked.delete(call.target);
    const writes = calls.filter((each) => isLog(each) && isWrite(each) && each.beganAt < call.beganAt);
    const own = writes.some(({ rest, beganAt }) => beganAt > request.at && rest.includes(request.mark));
    if (!own) faults.push(`${request.mark} was acknowledged before it was written into the log`);
    const written = Math.max(0, ...writes.map(({ endedAt }) => endedAt));
    const synced = calls.some(
      (each) => isLog(each) && isSync(each) && each.beganAt > written && each.endedAt < call.beganAt,
    );
    if (!synced) faults.push(`${request.mark} was acknowledged before the log was synced`);
  }
  return { answers, faults };
}
