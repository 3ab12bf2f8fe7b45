declare module "tweetnacl/nacl.js" {
  export { default } from "tweetnacl";
}
