import * as v from "valibot";
import type { NoteAct } from "../audit/note.ts";
import { accepted, type ErasedEndpoint, endpoint, ok } from "../http/endpoint.ts";
import { failure } from "../http/error-models.ts";
import type { KeyRotation, KeyRotationStanding } from "./key-rotation.ts";
import { operatorOrigin } from "./origin.ts";

export interface KeyRouteDeps {
  rotation: Pick<KeyRotation, "begin" | "standing">;
  noteAct: NoteAct;
}

const standing = v.object({
  rotating: v.pipe(v.boolean(), v.description("False: everything is sealed with the master key in use.")),
  resealed: v.pipe(
    v.number(),
    v.description("Values that this server has sealed anew since it began, or since its start."),
  ),
  damaged: v.pipe(
    v.number(),
    v.description("Values that no key opens, or that are on a damaged page. They stay as they are."),
  ),
  file: v.pipe(v.string(), v.description("Where the master key belongs on this server.")),
  in_place: v.pipe(
    v.boolean(),
    v.description(
      "False: the server could not replace the file, and has the key from the one with .next behind its name.",
    ),
  ),
});

const example = {
  ...{ rotating: true, resealed: 1200, damaged: 0 },
  ...{ file: "/var/lib/postrider/master-key", in_place: true },
};

const shown = ({ isUnderWay, resealed, damaged, file, isInPlace }: KeyRotationStanding) => ({
  ...{ rotating: isUnderWay, resealed, damaged },
  ...{ file, in_place: isInPlace },
});

/** What `postrider rotate-key` calls (rules, section 16). */
export function keyRoutes({ rotation, noteAct }: KeyRouteDeps): ErasedEndpoint[] {
  const path = "/operator/master-key";
  return [
    endpoint(
      {
        method: "GET",
        path,
        tag: "Operator",
        summary: "See how far a rotation of the master key is",
        description: "Where several servers share the database, each counts what it has sealed itself.",
        access: "operator",
        responses: { 200: { description: "How far it is.", schema: standing, example } },
      },
      async () => ok(shown(rotation.standing())),
    ),

    endpoint(
      {
        method: "POST",
        path: `${path}/rotate`,
        tag: "Operator",
        summary: "Replace the master key",
        description:
          "Seals with a new key from now on, and what is there anew in the background; while a rotation is under way it changes nothing. The key is the one in the file beside the key in use whose name ends with .next, or is made and put there. Servers that share the database all need it first.",
        access: "operator",
        responses: {
          202: { description: "The new key is in use.", schema: standing, example },
          503: failure(
            "Nothing has changed.",
            "master_key_missing",
            "The new master key is in /etc/postrider/master-key.next on this server, but relay-2 does not have it; nothing has changed. Try: copy it next to the key file on each of them, with .next appended to its name, wait 5 seconds and run this again.",
          ),
        },
      },
      async (request) => {
        const wasUnderWay = rotation.standing().isUnderWay;
        const begun = await rotation.begin();
        if (begun.isUnderWay && !wasUnderWay)
          await noteAct({ ...operatorOrigin(request), action: "master_key.rotated" });
        return accepted(shown(begun));
      },
    ),
  ];
}
