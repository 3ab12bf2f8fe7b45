import { expect } from "bun:test";
import { checkAnswer, type OpenApiDocument } from "../../../support/openapi-check.ts";
import type { Answer, RequestOptions, TestApp } from "../../../support/test-app.ts";

let published: OpenApiDocument | undefined;

/** A client that repeats what was answered 503, and takes no answer that the document does not have. */
export async function createClient(server: TestApp) {
  published ??= (await server.request("GET", "/openapi.json")).body as OpenApiDocument;
  const document = published;

  /** @returns the first answer that is no 503; fails if it has another status than this one */
  async function ask(method: string, path: string, status: number, options: RequestOptions = {}): Promise<Answer> {
    for (let tries = 1; ; tries += 1) {
      const answer = await server.request(method, path, options);
      const what = `${method} ${path}`;
      if (!path.startsWith("/operator")) checkAnswer(document, method, path, { ...answer, bodyText: answer.text });
      if (answer.status === 503 && tries < 3) {
        expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
        expect(answer.body).toEqual({ message: expect.any(String), code: expect.any(String) });
        continue;
      }
      expect([what, answer.status, answer.status === status ? "" : answer.text]).toEqual([what, status, ""]);
      return answer;
    }
  }
  return { ask };
}

export type Client = Awaited<ReturnType<typeof createClient>>;
