import { readValues } from "../config.ts";
import { type Command, dataDirFlag } from "./command.ts";
import { exitCode } from "./io.ts";
import { createOperatorClient } from "./operator-client.ts";

/** `postrider mail test`: sent by the running server, so that its settings and network are what is tested. */
export const mailTestCommand: Command = {
  words: ["mail", "test"],
  operands: ["ADDRESS"],
  flags: [dataDirFlag],
  summary: "Send a mail to an address, to see whether that works",
  details: `The running server sends it at once, by its own POSTRIDER_SMTP_URL. If the SMTP
server refuses it, its answer is printed.`,
  async run({ operands: [to = ""], flags }, io) {
    const { dataDir } = readValues(io.env, flags);
    await createOperatorClient(dataDir).send("POST", "/operator/mail/test", { to });
    io.out(`The SMTP server has taken a mail to ${to}.`);
    return exitCode.ok;
  },
};
