import { describe, expect, test } from "bun:test";
import * as v from "valibot";
import { jsonSchemaOf } from "../../../src/http/document/json-schema.ts";
import { jsonObject, queryInteger } from "../../../src/http/validation.ts";

describe("jsonSchemaOf", () => {
  test("an object is the object, whatever stands before it", () => {
    expect(jsonSchemaOf(jsonObject({ a: v.optional(v.string()) }))).toEqual({
      type: "object",
      properties: { a: { type: "string" } },
    });
  });

  test("digits of a query are an integer, its default too", () => {
    expect(jsonSchemaOf(v.object({ size: v.optional(queryInteger(1, 5), "2") })).properties).toEqual({
      size: { type: "integer", minimum: 1, maximum: 5, default: 2 },
    });
  });

  test("values that may be added are told from those that are there", () => {
    const open = v.pipe(v.string(), v.metadata({ "x-extensible-enum": ["A", "B"] }));
    expect(jsonSchemaOf(open)).toEqual({ type: "string", "x-extensible-enum": ["A", "B"] });
  });

  test("a literal true or false has a type, without which generators write invalid code", () => {
    expect(jsonSchemaOf(v.literal(true))).toEqual({ const: true, type: "boolean" });
    expect(jsonSchemaOf(v.literal("ok"))).toEqual({ const: "ok" });
  });

  test("what it cannot say, it refuses", () => {
    expect(() => jsonSchemaOf(v.date())).toThrow("cannot be expressed");
    expect(() => jsonSchemaOf(v.pipe(v.string(), v.regex(/a/i)))).toThrow("cannot be expressed");
  });

  test("a field's name says what its text is, also where it may be null", () => {
    const { properties } = jsonSchemaOf(
      v.object({ created_at: v.string(), lastAttemptAt: v.nullable(v.string()), email: v.string(), url: v.string() }),
    );
    expect(properties).toEqual({
      created_at: { type: "string", format: "date-time" },
      lastAttemptAt: { anyOf: [{ type: "string", format: "date-time" }, { type: "null" }] },
      email: { type: "string", format: "email" },
      url: { type: "string", format: "uri" },
    });
  });
});
