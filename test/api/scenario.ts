import { afterAll, beforeAll, expect, test } from "bun:test";
import { writeDocument } from "../../src/http/document/openapi.ts";
import { checkAnswer, type OpenApiDocument } from "../support/openapi-check.ts";
import { type Answer, startTestApp, type TestApp, type TestAppOptions } from "../support/test-app.ts";

/**
 * One row: a request, what its answer must be, and what must not appear in it. `section` names the sentence that it
 * proves, as `spec: Login` or `rules 4`; `sections.test.ts` lists those without a row.
 */
export interface Scenario<World> {
  section: string;
  /** Runs before the request, for what only this row needs. */
  given?(world: World): Promise<unknown>;
  request(world: World): Promise<Answer>;
  status: number;
  /** Compared with toMatchObject, or with toEqual when `exact`. */
  body?: unknown | ((world: World) => unknown);
  exact?: boolean;
  headers?: Record<string, string | RegExp>;
  /** Texts that the answer must not contain: a hash, another tenant's id, a secret. */
  never?(world: World): readonly string[];
  /** What must be true afterwards. */
  then?(world: World, answer: Answer): Promise<unknown> | unknown;
}

/** Sections that rows have been written for, for `sections.test.ts`. */
export const provenSections = new Set<string>();

/**
 * Runs a table against one server. Every real answer is also held against the published OpenAPI document.
 * @param method and path template of the rows, as the document has them: `GET /v1/events/{id}`
 */
export function scenarios<World extends { server: TestApp }>(
  endpoint: string,
  world: () => World,
  rows: Record<string, Scenario<World>>,
): void {
  const [method = "", path = ""] = endpoint.split(" ");
  for (const [name, row] of Object.entries(rows)) {
    provenSections.add(row.section);
    test(`${endpoint}: ${name}`, async () => {
      const current = world();
      await row.given?.(current);
      const answer = await row.request(current);
      expect({ status: answer.status, text: answer.status === row.status ? "" : answer.text }).toEqual({
        status: row.status,
        text: "",
      });
      const body = typeof row.body === "function" ? row.body(current) : row.body;
      if (row.exact) expect(answer.body).toEqual(body);
      // A copy: Bun's toMatchObject writes its matchers into the value that it is given.
      else if (body !== undefined) expect(structuredClone(answer.body)).toMatchObject(body as object);
      for (const [header, value] of Object.entries(row.headers ?? {})) {
        expect(answer.headers.get(header)).toEqual(typeof value === "string" ? value : expect.stringMatching(value));
      }
      for (const text of row.never?.(current) ?? []) expect(answer.text).not.toContain(text);
      const document = await documentOf(current.server);
      checkAnswer(document, method, path, { status: answer.status, headers: answer.headers, bodyText: answer.text });
      await row.then?.(current, answer);
    });
  }
}

const documents = new WeakMap<TestApp, Promise<OpenApiDocument>>();

/** Of everything that answers: what a server shows leaves out what it does not sell. */
function documentOf(server: TestApp): Promise<OpenApiDocument> {
  const known = documents.get(server) ?? writeDocument(server.app.endpoints, server.url, true).then(JSON.parse);
  documents.set(server, known);
  return known;
}

/** A server for the tests of one file. */
export function useServer(options: TestAppOptions = {}): () => TestApp {
  let server: TestApp | undefined;
  beforeAll(async () => {
    server = await startTestApp(options);
  });
  afterAll(async () => {
    await server?.stop();
  });
  return () => {
    if (!server) throw new Error("The server is not running yet");
    return server;
  };
}
