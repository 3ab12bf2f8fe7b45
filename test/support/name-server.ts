import dgram from "node:dgram";
import net from "node:net";
import ipaddr from "ipaddr.js";

/**
 * A name server on loopback that says what a test wants, and may change its answer with every question: for rebinding,
 * mixed answers, failures and silence.
 */
export interface NameServer {
  /** For `dnsServers`. */
  readonly address: string;
  /** `A receiver.example`, in the order asked. */
  readonly questions: string[];
  close(): void;
}

/**
 * Addresses, possibly none (c-ares remembers that, so a name that changes says NXDOMAIN); the same behind other names
 * (CNAME); a failure; or silence. `truncated` means that the answer must be requested over TCP, and `noise` is not an
 * answer at all.
 */
export type NameAnswer = Records | "NXDOMAIN" | "SERVFAIL" | "silence" | "truncated" | "noise";

type Records = readonly string[] | { readonly aliases: readonly string[]; readonly addresses: readonly string[] };

export type Zone = (name: string, type: "A" | "AAAA", over: "udp" | "tcp") => NameAnswer;

const responseCodes = { NXDOMAIN: 3, SERVFAIL: 2 };
const typeNames: Record<number, "A" | "AAAA" | undefined> = { 1: "A", 28: "AAAA" };
const cname = 5;
const noise = Buffer.alloc(40, 0xa5);

export async function startNameServer(zone: Zone): Promise<NameServer> {
  const questions: string[] = [];

  /** The bytes to answer with; none for silence. */
  function answerTo(message: Buffer, over: "udp" | "tcp"): Buffer | undefined {
    const question = readQuestion(message);
    const type = typeNames[question.type];
    if (type === undefined) return undefined;
    questions.push(`${type} ${question.name}`);
    const answer = zone(question.name, type, over);
    if (answer === "silence") return undefined;
    return answer === "noise" ? noise : respond(message, question, answer);
  }

  const peers = new Set<net.Socket>();
  const stream = net.createServer((peer) => {
    peers.add(peer);
    peer.on("error", () => {});
    peer.on("close", () => peers.delete(peer));
    serveStream(peer, (message) => answerTo(message, "tcp"));
  });
  const socket = dgram.createSocket("udp4");
  socket.on("message", (message, sender) => {
    const answer = answerTo(message, "udp");
    if (answer !== undefined) socket.send(answer, sender.port, sender.address);
  });
  // TCP first: its ports are scarcer, because closed connections keep them for a while.
  await new Promise<void>((resolve) => stream.listen(0, "127.0.0.1", resolve));
  const { port } = stream.address() as net.AddressInfo;
  await new Promise<void>((resolve, reject) => {
    socket.once("error", reject);
    socket.bind(port, "127.0.0.1", resolve);
  });
  return {
    address: `127.0.0.1:${port}`,
    questions,
    close() {
      socket.close();
      stream.close();
      for (const peer of peers) peer.destroy();
    },
  };
}

/** RFC 1035, section 4.2.2: messages preceded by their length. */
function serveStream(peer: net.Socket, answerTo: (message: Buffer) => Buffer | undefined): void {
  let pending: Buffer = Buffer.alloc(0);
  peer.on("data", (data: Buffer) => {
    pending = Buffer.concat([pending, data]);
    while (pending.length >= 2 && pending.length >= 2 + pending.readUInt16BE(0)) {
      const end = 2 + pending.readUInt16BE(0);
      const answer = answerTo(pending.subarray(2, end));
      pending = pending.subarray(end);
      if (answer !== undefined) peer.write(Buffer.concat([uint16(answer.length), answer]));
    }
  });
}

interface Question {
  name: string;
  type: number;
  /** Where the question ends in the message. */
  end: number;
}

/** RFC 1035, section 4.1.2: labels after the 12-byte header, then type and class. */
function readQuestion(message: Buffer): Question {
  const labels: string[] = [];
  let at = 12;
  for (let length = message.readUInt8(at); length > 0; length = message.readUInt8(at)) {
    labels.push(message.toString("latin1", at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join(".").toLowerCase(), type: message.readUInt16BE(at + 1), end: at + 5 };
}

/** RFC 1035, section 4.1: the question again, and a record for each alias and address, with a time to live of zero. */
function respond(message: Buffer, question: Question, answer: Records | "NXDOMAIN" | "SERVFAIL" | "truncated"): Buffer {
  const { aliases, addresses } = recordsOf(answer);
  const names = [question.name, ...aliases].map(nameOf);
  const owner = names.at(-1) ?? Buffer.alloc(1);
  const records = [
    ...aliases.map((_, i) => record(names[i] ?? owner, cname, names[i + 1] ?? owner)),
    ...addresses.map((address) => record(owner, question.type, Buffer.from(ipaddr.parse(address).toByteArray()))),
  ];
  const code = answer === "NXDOMAIN" || answer === "SERVFAIL" ? responseCodes[answer] : 0;
  const truncated = answer === "truncated" ? 0x0200 : 0;
  const header = [0x8180 | truncated | code, 1, records.length, 0, 0].map(uint16);
  return Buffer.concat([message.subarray(0, 2), ...header, message.subarray(12, question.end), ...records]);
}

function recordsOf(answer: Records | string): { aliases: readonly string[]; addresses: readonly string[] } {
  if (typeof answer === "string") return { aliases: [], addresses: [] };
  return "aliases" in answer ? answer : { aliases: [], addresses: answer };
}

const uint16 = (value: number) => Buffer.from([value >> 8, value & 255]);

/** A name as labels, each preceded by its length. */
const nameOf = (name: string) =>
  Buffer.concat([
    ...name.split(".").map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label)])),
    Buffer.alloc(1),
  ]);

const record = (owner: Uint8Array, type: number, data: Uint8Array) =>
  Buffer.concat([owner, uint16(type), uint16(1), Buffer.alloc(4), uint16(data.length), data]);
