import type { TestApp } from "./test-app.ts";

export interface Message {
  event: string;
  id: string;
  // biome-ignore lint/suspicious/noExplicitAny: each kind has fields of its own
  data: any;
}

/** A stream client that checks the form of every message. */
export async function openStream(app: Pick<TestApp, "url">, token: string, lastEventId?: string) {
  const abort = new AbortController();
  const response = await fetch(`${app.url}/v1/stream`, {
    headers: { Authorization: `Bearer ${token}`, ...(lastEventId !== undefined && { "Last-Event-ID": lastEventId }) },
    signal: abort.signal,
  });
  const messages: Message[] = [];
  const comments: string[] = [];
  const waiters = new Set<() => void>();
  let text = "";

  async function read(): Promise<void> {
    const decoder = new TextDecoder();
    try {
      for await (const chunk of response.body ?? []) {
        text += decoder.decode(chunk, { stream: true });
        const blocks = text.split("\n\n");
        text = blocks.pop() ?? "";
        for (const block of blocks) {
          if (block.startsWith(":")) {
            comments.push(block);
            continue;
          }
          const [, event = "", id = "", data = ""] = /^event: (\S+)\nid: (\d+-\d+)\ndata: (\{.*\})$/.exec(block) ?? [];
          if (event === "") throw new Error(`Not a message: ${block}`);
          messages.push({ event, id, data: JSON.parse(data) });
        }
        for (const wake of [...waiters]) wake();
      }
    } catch (error) {
      if (!abort.signal.aborted) throw error;
    }
  }
  const ended = read();
  ended.catch(() => {});

  const when = <T>(found: () => T | undefined): Promise<T> =>
    new Promise((resolve) => {
      const look = () => {
        const value = found();
        if (value === undefined) return;
        waiters.delete(look);
        resolve(value);
      };
      waiters.add(look);
      look();
    });

  return {
    response,
    messages,
    comments,
    /** Resolves when the server has ended the stream. */
    ended,
    close: () => abort.abort(),
    /** The first message of a kind that matches. */
    next: (event: string, fits: (data: Message["data"]) => boolean = () => true) =>
      when(() => messages.find((message) => message.event === event && fits(message.data))),
    whenComments: (n: number) => when(() => (comments.length >= n ? comments : undefined)),
    whenMessages: (n: number) => when(() => (messages.length >= n ? messages : undefined)),
  };
}
