import { describe, expect, test } from "bun:test";
import { shareSchemas } from "../../../src/http/document/shared-schemas.ts";

describe("shareSchemas", () => {
  const point = { title: "Point", type: "object", properties: { x: { type: "number" } } };
  const { title: _, ...pointSchema } = point;
  const reference = { $ref: "#/components/schemas/Point" };

  test("a schema with a title moves out, also from within another, and a reference takes its place", () => {
    const line = { title: "Line", type: "object", properties: { from: point, to: point } };
    expect(shareSchemas({ a: { type: "array", items: line }, b: point })).toEqual({
      value: { a: { type: "array", items: { $ref: "#/components/schemas/Line" } }, b: reference },
      schemas: {
        Point: pointSchema,
        Line: { type: "object", properties: { from: reference, to: reference } },
      },
    });
  });

  test("a title in an example, or as the name of a field, is none", () => {
    const schema = { type: "object", properties: { title: { type: "string" } } };
    const document = { schema, example: { title: "Emma", type: "object" } };
    expect(shareSchemas(document)).toEqual({ value: document, schemas: {} });
  });

  test("two schemas with the same title are refused", () => {
    const other = { ...point, properties: { y: { type: "number" } } };
    expect(() => shareSchemas([point, other])).toThrow("Two schemas have the title Point.");
  });
});
