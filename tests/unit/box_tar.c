/* box/archive/tar.h: what is written is read again, in pieces of any size, and what is wrong is
 * said to be. */
#include "box/archive/tar.h"
#include "test.h"

enum { ARCHIVE_MAX = 1 << 16 };

struct archive {
	char bytes[ARCHIVE_MAX];
	size_t n;
};

static void add(struct archive *a, const void *p, size_t n)
{
	assert_true(a->n + n <= ARCHIVE_MAX);
	memcpy(a->bytes + a->n, p, n);
	a->n += n;
}

static void add_entry(struct archive *a, const struct tar_entry *e, const char *content)
{
	static const char zeros[TAR_BLOCK];
	char head[TAR_HEAD_MAX];
	size_t n = tar_head(e, head);

	assert_true(n > 0 && n % TAR_BLOCK == 0);
	add(a, head, n);
	add(a, content, e->size);
	add(a, zeros, tar_padding(e->size));
}

static void add_end(struct archive *a)
{
	static const char zeros[TAR_END_BYTES];

	add(a, zeros, sizeof(zeros));
}

/* Writes down what is read: a line each, content in it. */
static enum tar_why read_in(const char *p, size_t n, size_t step, char *log, size_t size)
{
	static struct tar_reader r;
	size_t at = 0;

	tar_reader_init(&r);
	log[0] = '\0';
	for (size_t from = 0; from < n; from += step) {
		const char *in = p + from;
		size_t left = n - from < step ? n - from : step;
		enum tar_event ev;

		while ((ev = tar_read(&r, &in, &left)) != TAR_MORE) {
			if (ev == TAR_BAD)
				return r.why;
			if (ev == TAR_ENTRY || ev == TAR_PASSED)
				at += (size_t)snprintf(
					log + at, size - at, "%c %s %s %o %lld %lld.%u:",
					ev == TAR_PASSED ? '?' : "fdlh"[r.entry.type], r.entry.path,
					r.entry.link, r.entry.mode, (long long)r.entry.size,
					(long long)r.entry.mtime, r.entry.mtime_ns);
			else if (ev == TAR_CONTENT)
				at += (size_t)snprintf(log + at, size - at, "%.*s",
						       (int)r.content_n, r.content);
			else
				at += (size_t)snprintf(log + at, size - at, "%s\n",
						       ev == TAR_END ? "end" : ".");
			assert_true(at < size);
		}
		assert_int_equal(left, 0);
	}
	return tar_reader_end(&r);
}

/* Owners are numbers; what a header can't say is nobody. */
static void owners(void **state)
{
	static struct tar_reader r;
	struct tar_entry e = { TAR_FILE, 06755, 0, 0, 0, "f", "", 123, 65535 };
	char head[TAR_HEAD_MAX];
	const char *at = head;
	size_t n = tar_head(&e, head);

	tar_reader_init(&r);
	assert_int_equal(tar_read(&r, &at, &n), TAR_ENTRY);
	assert_int_equal(r.entry.uid, 123);
	assert_int_equal(r.entry.gid, 65535);
	assert_int_equal(r.entry.mode, 06755);
	n = tar_head(&e, head);
	memcpy(head + 108, "+", 1); /* uid */
	memset(head + 148, ' ', 8);
	for (size_t i = 0, sum = 0; i < n; i++) {
		sum += (unsigned char)head[i];
		if (i == n - 1)
			snprintf(head + 148, 7, "%06o", (unsigned)sum);
	}
	at = head;
	tar_reader_init(&r);
	assert_int_equal(tar_read(&r, &at, &n), TAR_ENTRY);
	assert_int_equal(r.entry.uid, 65534);
	assert_int_equal(r.entry.gid, 65535);
}

static void exchanges(void **state)
{
	static char many[4096], log[ARCHIVE_MAX], want[ARCHIVE_MAX];
	static struct archive a;
	const struct tar_entry entries[] = {
		{ TAR_DIRECTORY, 0755, 0, 1, 0, "d", "" },
		{ TAR_FILE, 0644, 5, 1700000000, 0, "d/f", "" },
		{ TAR_FILE, 0600, 0, 1700000000, 123456789, "d/empty", "" },
		{ TAR_FILE, 04755, 512, -1, 500000000, "d/block", "" },
		{ TAR_SYMLINK, 0777, 0, 0, 0, "d/l", "../../etc/passwd" },
		{ TAR_HARDLINK, 0644, 0, 0, 0, "d/h", "d/f" },
		{ TAR_FILE, 0644, 1, -77, 0, many, "" },
		{ TAR_SYMLINK, 0777, 0, 0, 0, "long", many },
		{ TAR_FILE, 0644, 0, 0, 0, "\xff\xfe name \n with all", "" },
	};
	const char *contents[ARRAY_LEN(entries)] = { "", "hello", "", NULL, "", "", "x", "", "" };
	char block[513];

	memset(block, 'b', 512);
	block[512] = '\0';
	contents[3] = block;
	memset(many, 'p', 4094);
	many[90] = many[200] = '/';
	a.n = 0;
	want[0] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(entries); i++) {
		const struct tar_entry *e = &entries[i];
		size_t n = strlen(want);

		add_entry(&a, e, contents[i]);
		snprintf(want + n, sizeof(want) - n, "%c %s%s %s %o %lld %lld.%u:%s%s",
			 "fdlh"[e->type], e -> path, e -> type == TAR_DIRECTORY ? "/" : "", e->link,
			 e->mode, (long long)e->size, (long long)e->mtime, e->mtime_ns, contents[i],
			 e->type == TAR_FILE ? ".\n" : "");
	}
	strcat(want, "end\n");
	add_end(&a);
	for (size_t step = 1; step < 1100; step = step < 3 ? step + 1 : step * 2 + 1) {
		assert_int_equal(read_in(a.bytes, a.n, step, log, sizeof(log)), TAR_FINE);
		assert_string_equal(log, want);
	}
	/* each beginning of it is cut, and says so */
	for (size_t n = 0; n <= a.n - TAR_END_BYTES; n += 97)
		assert_int_equal(read_in(a.bytes, n, 4096, log, sizeof(log)), TAR_WHY_CUT);
}

static void large_sizes(void **state)
{
	static struct tar_reader r;
	const struct tar_entry e = { TAR_FILE, 0644, 1ull << 40, 1ll << 40, 0, "large", "" };
	char head[TAR_HEAD_MAX];
	size_t n = tar_head(&e, head);
	const char *p = head;

	tar_reader_init(&r);
	assert_int_equal(tar_read(&r, &p, &n), TAR_ENTRY);
	assert_true(r.entry.size == e.size && r.entry.mtime == e.mtime);
	assert_int_equal(tar_reader_end(&r), TAR_WHY_CUT);
}

static void what_has_no_head(void **state)
{
	static char path[TAR_PATH_MAX + 1];
	static char head[TAR_HEAD_MAX];

	assert_int_equal(tar_head(&(struct tar_entry){ .path = "", .link = "" }, head), 0);
	assert_int_equal(tar_head(&(struct tar_entry){ TAR_FILE, .path = "f", .link = "l" }, head),
			 0);
	assert_int_equal(
		tar_head(&(struct tar_entry){ TAR_SYMLINK, .path = "f", .link = "" }, head), 0);
	memset(path, 'x', TAR_PATH_MAX - 1);
	assert_true(tar_head(&(struct tar_entry){ TAR_FILE, .path = path, .link = "" }, head) > 0);
	assert_true(tar_head(&(struct tar_entry){ TAR_SYMLINK, .path = path, .link = path }, head) >
		    0);
	assert_int_equal(
		tar_head(&(struct tar_entry){ TAR_DIRECTORY, .path = path, .link = "" }, head), 0);
	path[TAR_PATH_MAX - 1] = 'x';
	assert_int_equal(tar_head(&(struct tar_entry){ TAR_FILE, .path = path, .link = "" }, head),
			 0);
}

/* ---- what others could write ----------------------------------------------------------------- */

static void set_sum(char *block)
{
	unsigned sum = 0;

	memset(block + 148, ' ', 8);
	for (int i = 0; i < TAR_BLOCK; i++)
		sum += (unsigned char)block[i];
	snprintf(block + 148, 8, "%06o", sum);
	block[155] = ' ';
}

/* A header of that type and size, and a body. */
static void add_raw(struct archive *a, char type, const char *size, const char *body, size_t n)
{
	static const char zeros[TAR_BLOCK];
	char block[TAR_BLOCK] = "name";

	snprintf(block + 100, 8, "0000644");
	snprintf(block + 124, 12, "%s", size);
	block[156] = type;
	memcpy(block + 257,
	       "ustar\0"
	       "00",
	       8);
	set_sum(block);
	add(a, block, sizeof(block));
	add(a, body, n);
	add(a, zeros, tar_padding(n));
}

/* records: a PAX header's; "" for none; then one entry of that type with that size field */
static const struct {
	const char *name;
	char meta; /* its type */
	const char *records;
	char type;
	const char *size;
	enum tar_why why;
	const char *read; /* with TAR_FINE */
} rows[] = {
	{ "plain", 0, "", '0', "0", TAR_FINE, "f name  644 0 0.0:.\nend\n" },
	{ "path", 'x', "12 path=p/q\n", '0', "0", TAR_FINE, "f p/q  644 0 0.0:.\nend\n" },
	{ "path twice", 'x', "10 path=a\n10 path=b\n", '0', "0", TAR_FINE,
	  "f b  644 0 0.0:.\nend\n" },
	{ "path taken back", 'x', "10 path=a\n8 path=\n", '0', "0", TAR_FINE,
	  "f name  644 0 0.0:.\nend\n" },
	{ "unknown key", 'x', "27 a.key.that.nobody.has=1\n", '0', "0", TAR_FINE,
	  "f name  644 0 0.0:.\nend\n" },
	{ "value with newlines", 'x', "13 comment=\n\n", '0', "0", TAR_FINE,
	  "f name  644 0 0.0:.\nend\n" },
	{ "time", 'x', "17 mtime=-1.5000\n", '0', "0", TAR_FINE,
	  "f name  644 0 -2.500000000:.\nend\n" },
	{ "time of many digits", 'x', "28 mtime=1.0123456789999999\n", '0', "0", TAR_FINE,
	  "f name  644 0 1.12345678:.\nend\n" },
	{ "no time", 'x', "11 mtime=x\n", '0', "0", TAR_WHY_NUMBER, NULL },
	{ "length 0", 'x', "0 path=a\n", '0', "0", TAR_WHY_RECORD, NULL },
	{ "length too short", 'x', "8 path=a\n", '0', "0", TAR_WHY_RECORD, NULL },
	{ "length too long", 'x', "99 path=a\n", '0', "0", TAR_WHY_RECORD, NULL },
	{ "length of many digits", 'x', "00000000010 path=a\n", '0', "0", TAR_WHY_RECORD, NULL },
	{ "no key", 'x', "6 =ab\n", '0', "0", TAR_WHY_RECORD, NULL },
	{ "no value", 'x', "8 patha\n", '0', "0", TAR_WHY_RECORD, NULL },
	{ "no newline", 'x', "10 path=ab", '0', "0", TAR_WHY_RECORD, NULL },
	{ "size", 'x', "10 size=0\n", '0', "7", TAR_FINE, "f name  644 0 0.0:.\nend\n" },
	{ "size below 0", 'x', "11 size=-1\n", '0', "0", TAR_WHY_NUMBER, NULL },
	{ "size too large", 'x', "29 size=99999999999999999999\n", '0', "0", TAR_WHY_NUMBER, NULL },
	{ "size of text", 'x', "12 size=1x2\n", '0', "0", TAR_WHY_NUMBER, NULL },
	{ "sparse by PAX", 'x', "22 GNU.sparse.major=1\n", '0', "0", TAR_WHY_SPARSE, NULL },
	{ "global comment", 'g', "14 comment=ab\n", '0', "0", TAR_FINE,
	  "f name  644 0 0.0:.\nend\n" },
	{ "global path", 'g', "10 path=a\n", '0', "0", TAR_WHY_GLOBAL, NULL },
	{ "global size", 'g', "10 size=1\n", '0', "0", TAR_WHY_GLOBAL, NULL },
	{ "global time", 'g', "11 mtime=9\n", '0', "0", TAR_FINE, "f name  644 0 0.0:.\nend\n" },
	{ "long name", 'L', "a/long/name", '0', "0", TAR_FINE,
	  "f a/long/name  644 0 0.0:.\nend\n" },
	{ "long link", 'K', "to/there", '2', "0", TAR_FINE, "l name to/there 644 0 0.0:end\n" },
	{ "v7 directory", 'L', "d/", '\0', "0", TAR_FINE, "d d/  644 0 0.0:end\n" },
	{ "directory with content", 0, "", '5', "1", TAR_WHY_CONTENT, NULL },
	{ "link without target", 0, "", '2', "0", TAR_WHY_NAME, NULL },
	{ "hard link with content", 'K', "other", '1', "3", TAR_WHY_CONTENT, NULL },
	{ "old GNU sparse", 0, "", 'S', "0", TAR_WHY_SPARSE, NULL },
	{ "device", 0, "", '3', "0", TAR_FINE, "? name  644 0 0.0:end\n" },
	{ "pipe", 0, "", '6', "0", TAR_FINE, "? name  644 0 0.0:end\n" },
	{ "size with a sign", 0, "", '0', "-1", TAR_WHY_NUMBER, NULL },
	{ "size of digits that are none", 0, "", '0', "9", TAR_WHY_NUMBER, NULL },
	{ "size of hexadecimal digits", 0, "", '0', "0x10", TAR_WHY_NUMBER, NULL },
	{ "empty header", 'x', "", '0', "0", TAR_WHY_RECORD, NULL },
};

static void by_others(void **state)
{
	static char log[4096];
	static struct archive a;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char size[24];

		a.n = 0;
		snprintf(size, sizeof(size), "%zo", strlen(rows[i].records));
		if (rows[i].meta)
			add_raw(&a, rows[i].meta, size, rows[i].records, strlen(rows[i].records));
		add_raw(&a, rows[i].type, rows[i].size, "", 0);
		add_end(&a);
		for (size_t step = 1; step < 2000; step = step * 7 + 2) {
			ROW_CHECK(read_in(a.bytes, a.n, step, log, sizeof(log)) == rows[i].why,
				  rows[i].name);
			ROW_CHECK(!rows[i].read || strcmp(log, rows[i].read) == 0, rows[i].name);
		}
	}
}

static void numbers_of_gnu(void **state)
{
	static const struct {
		unsigned char field[12];
		enum tar_why why;
		int64_t size;
	} sizes[] = {
		{ { 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 1 }, TAR_WHY_CUT, 0x201 },
		{ { 0x80, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff },
		  TAR_WHY_CUT,
		  INT64_MAX },
		{ { 0x80, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0 }, TAR_WHY_NUMBER, 0 },
		{ { 0x80, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0 }, TAR_WHY_NUMBER, 0 },
		{ { 0xbf, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }, TAR_WHY_NUMBER, 0 },
		{ { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff },
		  TAR_WHY_NUMBER,
		  0 },
	};
	static struct tar_reader r;
	static struct archive a;

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		const char *p = a.bytes;
		enum tar_event ev;
		size_t n;

		a.n = 0;
		add_raw(&a, '0', "0", "", 0);
		memcpy(a.bytes + 124, sizes[i].field, 12);
		set_sum(a.bytes);
		n = a.n;
		tar_reader_init(&r);
		ev = tar_read(&r, &p, &n);
		assert_int_equal(ev, sizes[i].why == TAR_WHY_NUMBER ? TAR_BAD : TAR_ENTRY);
		assert_int_equal(tar_reader_end(&r), sizes[i].why);
		assert_true(ev == TAR_BAD || (int64_t)r.entry.size == sizes[i].size);
	}
}

static void bounds(void **state)
{
	static char log[ARCHIVE_MAX], name[8192];
	static struct archive a;

	/* a name that is too long, by either kind of header */
	memset(name, 'n', 4096);
	a.n = 0;
	add_raw(&a, 'L', "10001", name, 4097);
	assert_int_equal(read_in(a.bytes, a.n, 100, log, sizeof(log)), TAR_WHY_LONG);
	snprintf(name, sizeof(name), "4107 path=");
	memset(name + 10, 'n', 4096);
	name[4106] = '\n';
	a.n = 0;
	add_raw(&a, 'x', "10013", name, 4107);
	assert_int_equal(read_in(a.bytes, a.n, 100, log, sizeof(log)), TAR_WHY_LONG);
	/* a header that claims more than may be */
	a.n = 0;
	add_raw(&a, 'x', "4000001", "", 0);
	assert_int_equal(read_in(a.bytes, a.n, 100, log, sizeof(log)), TAR_WHY_META);
	/* a NUL in a path */
	a.n = 0;
	add_raw(&a, 'x', "14", "12 path=a\0b\n", 12);
	assert_int_equal(read_in(a.bytes, a.n, 100, log, sizeof(log)), TAR_WHY_NAME);
	a.n = 0;
	add_raw(&a, 'L', "4", "a\0b", 4);
	assert_int_equal(read_in(a.bytes, a.n, 100, log, sizeof(log)), TAR_WHY_NAME);
}

static void ends(void **state)
{
	static char log[4096];
	static struct archive a;
	size_t whole;

	a.n = 0;
	add_raw(&a, '0', "0", "", 0);
	whole = a.n;
	add_end(&a);
	/* one block of zeros is an end, too */
	assert_int_equal(read_in(a.bytes, whole + TAR_BLOCK, 100, log, sizeof(log)), TAR_FINE);
	assert_int_equal(read_in(a.bytes, whole + TAR_BLOCK + 1, 100, log, sizeof(log)),
			 TAR_WHY_CUT);
	/* more zeros are, and nothing else */
	add_end(&a);
	assert_int_equal(read_in(a.bytes, a.n, 100, log, sizeof(log)), TAR_FINE);
	a.bytes[a.n - 1] = 'x';
	assert_int_equal(read_in(a.bytes, a.n, 100, log, sizeof(log)), TAR_WHY_AFTER);
	memcpy(a.bytes + whole + TAR_BLOCK, a.bytes, TAR_BLOCK);
	assert_int_equal(read_in(a.bytes, a.n, 100, log, sizeof(log)), TAR_WHY_AFTER);
	/* any byte of a header that changes is seen */
	for (size_t i = 0; i < TAR_BLOCK; i++) {
		a.bytes[i] ^= 0x21;
		if (i < 148 || i > 155)
			assert_int_equal(read_in(a.bytes, a.n, 4096, log, sizeof(log)),
					 TAR_WHY_CHECKSUM);
		a.bytes[i] ^= 0x21;
	}
}

static const struct {
	const char *path, *clean; /* NULL: refused */
} paths[] = {
	{ "a", "a" },
	{ "a/b", "a/b" },
	{ "./a//b/./c/", "a/b/c" },
	{ "/", "." },
	{ ".", "." },
	{ "./", "." },
	{ "/etc/passwd", "etc/passwd" },
	{ "..", NULL },
	{ "a/..", NULL },
	{ "../a", NULL },
	{ "a/../b", NULL },
	{ "/../a", NULL },
	{ "...", "..." },
	{ "..a/.b", "..a/.b" },
	{ "a/..b/c", "a/..b/c" },
	{ "///a///", "a" },
};

static void clean_paths(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		char path[64];

		snprintf(path, sizeof(path), "%s", paths[i].path);
		ROW_CHECK(tar_path_clean(path) == (paths[i].clean != NULL), paths[i].path);
		ROW_CHECK(!paths[i].clean || strcmp(path, paths[i].clean) == 0, paths[i].path);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exchanges),   cmocka_unit_test(owners),
		cmocka_unit_test(large_sizes), cmocka_unit_test(what_has_no_head),
		cmocka_unit_test(by_others),   cmocka_unit_test(numbers_of_gnu),
		cmocka_unit_test(bounds),      cmocka_unit_test(ends),
		cmocka_unit_test(clean_paths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
