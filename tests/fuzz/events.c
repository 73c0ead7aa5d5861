/*
 * events.jsonl as anybody may have left it: what is read is valid and in order, what is appended is
 * the last of it, and both are there when it is opened again.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "agents/store/events.h"
#include "fuzz.h"
#include "json/document/json.h"

struct seen {
	uint64_t last;
	size_t n;
};

static void on_event(void *owner, uint64_t seq, struct str line)
{
	struct seen *seen = owner;
	struct err e;
	AUTO(json_free) struct json_doc *doc = json_parse(line, NULL, &e);
	uint64_t said;

	MUST(seq > seen->last && json_uint64(json_get(json_root(doc), "seq"), &said) &&
	     said == seq);
	seen->last = seq;
	seen->n++;
}

static size_t read_all(struct events *v, struct seen *seen)
{
	struct events_page page = { .more = true };
	struct err e;

	*seen = (struct seen){ 0 };
	while (page.more) {
		struct events_range r = { .after = page.last, .limit = 7 };

		MUST(events_read(v, &r, on_event, seen, &page, &e) == 0);
	}
	return seen->n;
}

static struct events *opened(int folder)
{
	struct err e;
	struct events *v = events_open(folder, NULL, &e);

	MUST(v);
	return v;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char dir[] = "/tmp/fuzz-holt-XXXXXX";
	int folder = mkdtemp(dir) ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	int file = openat(folder, "events.jsonl", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	struct events *v;
	struct seen seen;
	struct err e;
	uint64_t seq;
	size_t before;

	MUST(file >= 0 && write(file, data, n) == (ssize_t)n);
	close(file);
	v = opened(folder);
	before = read_all(v, &seen);
	if (events_append(v, "error", STR_LIT("{\"message\":\"x\"}"), &seq, &e) < 0) {
		MUST(e.code == ERR_LIMIT);
	} else {
		MUST(seq > seen.last && read_all(v, &seen) == before + 1 && seen.last == seq);
		before++;
	}
	events_close(v);
	v = opened(folder);
	MUST(read_all(v, &seen) == before && seen.last <= events_last(v));
	events_close(v);
	MUST(unlinkat(folder, "events.jsonl", 0) == 0 && unlinkat(folder, "events.idx", 0) == 0);
	close(folder);
	MUST(rmdir(dir) == 0);
	return 0;
}
