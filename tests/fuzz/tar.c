/* Tar archives: whatever the pieces are that one comes in, the same comes out, and what was read
 * can be written and read again. The first byte is the size of the pieces. */
#include <string.h>

#include "base/buf.h"
#include "box/archive/tar.h"
#include "fuzz.h"

/* Its head, written and read, says the same. */
static void write_again(const struct tar_entry *e)
{
	static struct tar_reader r;
	static char head[TAR_HEAD_MAX];
	const char *p = head;
	size_t n = tar_head(e, head), size = strlen(e->path);

	if (n == 0) {
		MUST(e->type == TAR_DIRECTORY && size == TAR_PATH_MAX - 1);
		return;
	}
	MUST(n % TAR_BLOCK == 0 && n <= TAR_HEAD_MAX);
	tar_reader_init(&r);
	MUST(tar_read(&r, &p, &n) == TAR_ENTRY);
	MUST(strncmp(r.entry.path, e->path, size) == 0 && strlen(r.entry.path) <= size + 1);
	MUST(strcmp(r.entry.link, e->link) == 0 && r.entry.mode == e->mode);
	MUST(r.entry.size == e->size && r.entry.mtime == e->mtime &&
	     r.entry.mtime_ns == e->mtime_ns);
}

/* Writes down what is read. */
static void read_all(const char *p, size_t n, size_t step, struct buf *out)
{
	static struct tar_reader r;
	enum tar_event ev = TAR_MORE;
	static char path[TAR_PATH_MAX];
	struct err e;

	tar_reader_init(&r);
	for (size_t at = 0; at < n && ev != TAR_BAD; at += step) {
		const char *in = p + at;
		size_t left = n - at < step ? n - at : step;

		while ((ev = tar_read(&r, &in, &left)) != TAR_MORE && ev != TAR_BAD) {
			if (ev == TAR_CONTENT) {
				MUST(r.content_n > 0);
				MUST(buf_add(out, r.content, r.content_n, &e) == 0);
				continue;
			}
			MUST(buf_addf(out, &e, "%d:%s:%s:%o:%llu\n", ev, r.entry.path, r.entry.link,
				      r.entry.mode, (unsigned long long)r.entry.size) == 0);
			if (ev != TAR_ENTRY)
				continue;
			MUST(r.entry.path[0] && strlen(r.entry.path) < TAR_PATH_MAX);
			write_again(&r.entry);
			memcpy(path, r.entry.path, strlen(r.entry.path) + 1);
			if (tar_path_clean(path))
				MUST(path[0] && path[0] != '/' && !strstr(path, "//") &&
				     strcmp(path, "..") != 0);
		}
		MUST(ev == TAR_BAD || left == 0);
	}
	MUST(buf_addf(out, &e, "%d %d\n", r.why, tar_reader_end(&r)) == 0);
	MUST((ev == TAR_BAD) == (r.why != TAR_FINE));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	size_t step = n > 0 ? data[0] + 1u : 1;
	autobuf struct buf pieces = BUF_INIT(1 << 24), bytes = BUF_INIT(1 << 24);

	if (n == 0)
		return 0;
	read_all((const char *)data + 1, n - 1, step, &pieces);
	read_all((const char *)data + 1, n - 1, 1, &bytes);
	MUST(pieces.n == bytes.n && memcmp(pieces.p, bytes.p, bytes.n) == 0);
	return 0;
}
