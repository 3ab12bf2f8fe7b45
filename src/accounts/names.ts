/** Names for accounts created without one: `Sandbox Amber Falcon 42` (rules, section 4). */

const adjectives = (
  "Amber Azure Brave Bright Calm Clear Clever Coral Cosmic Crimson Crisp Daring Eager Early Ember Fair " +
  "Fleet Gentle Gilded Golden Grand Green Happy Hazel Humble Indigo Ivory Jolly Keen Kind Lively Lucky " +
  "Lunar Marble Merry Mighty Misty Noble Northern Olive Opal Patient Pearl Polar Proud Quick Quiet Rapid " +
  "Ruby Rustic Scarlet Silent Silver Simple Solar Steady Sunny Swift Tidal Velvet Vivid Warm Wild Witty"
).split(" ");

const nouns = (
  "Acorn Anchor Arrow Badger Beacon Bison Breeze Bridge Canyon Cedar Comet Condor Cypress Crane Dolphin Dune " +
  "Eagle Falcon Fern Finch Fjord Forest Fox Garden Glacier Harbor Hawk Heron Island Jaguar Lagoon Lantern " +
  "Lark Lynx Maple Meadow Meteor Mountain Oak Ocean Orchard Osprey Otter Panda Pebble Pine Planet Prairie " +
  "Puffin Raven Reef Ridge River Robin Sparrow Spruce Summit Tiger Thistle Tundra Valley Walnut Willow Wren"
).split(" ");

/** Draws a whole number from 0 up to, but not including, `below`. */
export type Draw = (below: number) => number;

/** Not for secrets: two numbers of one draw in 2^32 are more likely than the others. */
const drawRandom: Draw = (below) => (crypto.getRandomValues(new Uint32Array(1))[0] ?? 0) % below;

/** A name for a sandbox. It is a label: two accounts may have the same. */
export function sandboxName(draw: Draw = drawRandom): string {
  const adjective = adjectives[draw(adjectives.length)];
  const noun = nouns[draw(nouns.length)];
  return `Sandbox ${adjective} ${noun} ${String(draw(100)).padStart(2, "0")}`;
}
