const params = new URLSearchParams({ q: "is:open label:bug", sort: "created", page: "1" });
params.append("label", "good first issue");
params.set("page", 2);
const url = new URL("/search/issues", "https://api.example.com");
url.search = params.toString();
url.searchParams.delete("sort");
const back = new URL(url);
const joined = new URL("../other?x=1#frag", "https://example.com/a/b/c");
console.log(url.href);
return {
  origin: back.origin,
  q: back.searchParams.get("q"),
  labels: back.searchParams.getAll("label"),
  entries: [...back.searchParams].length,
  joined: joined.href,
  valid: URL.canParse("not a url"),
  encoded: encodeURIComponent("a b&c"),
};
