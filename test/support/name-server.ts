import dgram from "node:dgram";
import ipaddr from "ipaddr.js";

/**
 * A name server on loopback that says what a test wants, and may change its mind with every question: for rebinding,
 * mixed answers, failures and silence.
 */
export interface NameServer {
  /** For `dnsServers`. */
  readonly address: string;
  /** `A receiver.example`, in the order asked. */
  readonly questions: string[];
  close(): void;
}

/** Addresses, which may be none (c-ares remembers that, so a name that changes says NXDOMAIN); a failure; or silence. */
export type NameAnswer = readonly string[] | "NXDOMAIN" | "SERVFAIL" | "silence";

export type Zone = (name: string, type: "A" | "AAAA") => NameAnswer;

const responseCodes = { NXDOMAIN: 3, SERVFAIL: 2 };
const typeNames: Record<number, "A" | "AAAA" | undefined> = { 1: "A", 28: "AAAA" };

export async function startNameServer(zone: Zone): Promise<NameServer> {
  const socket = dgram.createSocket("udp4");
  const questions: string[] = [];
  socket.on("message", (message, sender) => {
    const question = readQuestion(message);
    const type = typeNames[question.type];
    if (type === undefined) return;
    questions.push(`${type} ${question.name}`);
    const answer = zone(question.name, type);
    if (answer !== "silence") socket.send(respond(message, question, answer), sender.port, sender.address);
  });
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  return {
    address: `127.0.0.1:${socket.address().port}`,
    questions,
    close: () => void socket.close(),
  };
}

interface Question {
  name: string;
  type: number;
  /** Where it ends in the message. */
  end: number;
}

/** RFC 1035, section 4.1.2: labels after the 12 bytes of the header, then type and class. */
function readQuestion(message: Buffer): Question {
  const labels: string[] = [];
  let at = 12;
  for (let length = message.readUInt8(at); length > 0; length = message.readUInt8(at)) {
    labels.push(message.toString("latin1", at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join(".").toLowerCase(), type: message.readUInt16BE(at + 1), end: at + 5 };
}

/** RFC 1035, section 4.1: the question again, and a record for each address, with a time to live of zero. */
function respond(message: Buffer, question: Question, answer: readonly string[] | "NXDOMAIN" | "SERVFAIL"): Buffer {
  const addresses = typeof answer === "string" ? [] : answer;
  const header = Buffer.alloc(12);
  message.copy(header, 0, 0, 2);
  header.writeUInt16BE(0x8180 | (typeof answer === "string" ? responseCodes[answer] : 0), 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(addresses.length, 6);
  const records = addresses.map((address) => record(question.type, Buffer.from(ipaddr.parse(address).toByteArray())));
  return Buffer.concat([header, message.subarray(12, question.end), ...records]);
}

function record(type: number, data: Uint8Array): Buffer {
  const head = Buffer.alloc(12);
  head.writeUInt16BE(0xc00c, 0); // the name of the question
  head.writeUInt16BE(type, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(data.length, 10);
  return Buffer.concat([head, data]);
}
