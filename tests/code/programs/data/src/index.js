import { slug } from "./util.js";
// TODO: read the title from the command line
const title = "Hello World";
console.log(slug(title));
// FIXME: exit code
