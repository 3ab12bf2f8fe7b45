declare module "*/pages.css" {
  const text: string;
  export default text;
}
