/* hub/workspace: objects that are damaged, files in pieces, and trees of archives. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "box/archive/tar.h"
#include "hub/workspace/differ.h"
#include "hub/workspace/mark.h"
#include "hub/workspace/piece.h"
#include "hub/workspace/take.h"
#include "test.h"

static struct {
	char path[32];
	int dir;
	struct objects objects;
} store;

static int setup(void **state)
{
	struct err e = ERR_INIT;

	strcpy(store.path, "/tmp/unit-unit-XXXXXX");
	if (!mkdtemp(store.path))
		return -1;
	store.dir = open(store.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return objects_open(&store.objects, store.dir, &e) < 0 ||
			       objects_begin(&store.objects, &e) < 0
		     ? -1
		     : 0;
}

static int teardown(void **state)
{
	struct err e = ERR_INIT;

	objects_close(&store.objects);
	close_fd(&store.dir);
	return folder_clear(AT_FDCWD, store.path, true, &e);
}

/* ---- objects --------------------------------------------------------------------------------- */

static void test_damage_is_seen(void **state)
{
	static const char *const spoilt[] = { "", "c", "cgooD", "tgood", "cgood+" };
	autobuf struct buf got = BUF_INIT(OBJECT_MAX + 1);
	char hex[BLAKE2B_HEX + 1], path[128];
	struct object_id id;
	struct err e = ERR_INIT;

	assert_int_equal(objects_put(&store.objects, OBJECT_PIECE, STR_LIT("good"), &id, &e), 0);
	assert_int_equal(objects_commit(&store.objects, &e), 0);
	assert_int_equal(objects_get(&store.objects, OBJECT_PIECE, &id, &got, &e), 0);
	assert_true(str_is(buf_str(&got), "good"));
	assert_int_equal(objects_get(&store.objects, OBJECT_TREE, &id, &got, &e), -1);
	blake2b_hex(id.b, hex);
	snprintf(path, sizeof(path), "%s/objects/%.2s/%s", store.path, hex, hex + 2);
	for (size_t i = 0; i < ARRAY_LEN(spoilt); i++) {
		autoclose int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
		struct err why = ERR_INIT;

		assert_int_equal(fd_write(fd, spoilt[i], strlen(spoilt[i])), 0);
		assert_int_equal(objects_get(&store.objects, OBJECT_PIECE, &id, &got, &why), -1);
		assert_int_equal(why.code, ERR_WORKSPACE);
	}
	/* one of another length is written anew */
	assert_int_equal(objects_begin(&store.objects, &e), 0);
	assert_int_equal(objects_put(&store.objects, OBJECT_PIECE, STR_LIT("good"), &id, &e), 0);
	assert_int_equal(objects_commit(&store.objects, &e), 0);
	assert_int_equal(objects_get(&store.objects, OBJECT_PIECE, &id, &got, &e), 0);
}

/* ---- pieces ---------------------------------------------------------------------------------- */

static struct tree_entry cut(const char *bytes, size_t n, size_t step)
{
	struct tree_entry t = { .name = STR_LIT("f") };
	struct pieces p;
	struct err e = ERR_INIT;

	pieces_init(&p, &store.objects);
	pieces_begin(&p);
	for (size_t at = 0; at < n; at += step) {
		struct str part = { bytes + at, n - at < step ? n - at : step };

		assert_int_equal(pieces_add(&p, part, &e), 0);
	}
	assert_int_equal(pieces_end(&p, &t, &e), 0);
	pieces_fini(&p);
	return t;
}

static int add_bytes(void *arg, struct str bytes, struct err *e)
{
	return buf_add(arg, bytes.p, bytes.n, e);
}

static int check_piece(void *arg, const struct tree_piece *p, struct err *e)
{
	size_t *n = arg;

	assert_in_range(p->bytes, 1, PIECE_MAX);
	++*n;
	return 0;
}

static void test_files_in_pieces(void **state)
{
	enum { N = 3000000, AT = 1000000, MORE = 100 };
	autofree char *bytes = malloc(N + MORE);
	struct tree_entry whole, same, longer;
	autobuf struct buf got = BUF_INIT(N + MORE);
	struct err e = ERR_INIT;
	uint64_t before;
	size_t n = 0;

	srand(20);
	for (size_t i = 0; i < N; i++)
		bytes[i] = (char)rand();
	whole = cut(bytes, N, N);
	same = cut(bytes, N, 4099); /* however it comes */
	assert_true(tree_same(&whole, &same) && whole.bytes == N && whole.type == TREE_PIECES);
	assert_int_equal(tree_pieces(&store.objects, &whole, check_piece, &n, &e), 0);
	assert_in_range(n, N / PIECE_MAX, N / PIECE_MIN + 1);
	assert_int_equal(tree_content(&store.objects, &whole, add_bytes, &got, &e), 0);
	assert_true(got.n == N && memcmp(got.p, bytes, N) == 0);

	/* an insertion adds two pieces at most, and the list */
	before = store.objects.added.n;
	memmove(bytes + AT + MORE, bytes + AT, N - AT);
	longer = cut(bytes, N + MORE, 65536);
	assert_true(!tree_same(&whole, &longer));
	assert_in_range(store.objects.added.n - before, 1, 3);
	assert_int_equal(cut("", 0, 1).type, TREE_PIECE);
}

/* ---- trees ----------------------------------------------------------------------------------- */

struct row {
	enum tar_type type;
	const char *path, *content; /* or where a link leads */
};

static struct take_result take(const struct row *rows, size_t n, const struct object_id *base,
			       bool changes)
{
	const struct take_spec spec = { .objects = &store.objects, .changes = changes };
	struct err e = ERR_INIT;
	AUTO(take_free) struct take *t = take_new(&spec, &e);
	autoclose int fd = memfd_create("archive", MFD_CLOEXEC);
	static const char zeros[TAR_END_BYTES];
	struct take_result result;

	for (size_t i = 0; i < n; i++) {
		bool file = rows[i].type == TAR_FILE;
		size_t length = file ? strlen(rows[i].content) : 0;
		struct tar_entry entry = { .type = rows[i].type,
					   .mode = 0644,
					   .size = length,
					   .path = rows[i].path,
					   .link = file ? "" : rows[i].content };
		char head[TAR_HEAD_MAX];

		assert_int_equal(fd_write(fd, head, tar_head(&entry, head)), 0);
		assert_int_equal(fd_write(fd, rows[i].content, length), 0);
		assert_int_equal(fd_write(fd, zeros, tar_padding(length)), 0);
	}
	assert_int_equal(fd_write(fd, zeros, sizeof(zeros)), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(take_read(t, fd, &e), 0);
	assert_int_equal(take_tree(t, base, &result, &e), 0);
	return result;
}

/* As "+a -b ~c". */
static int tell(void *arg, struct str path, const struct tree_entry *was,
		const struct tree_entry *is, struct err *e)
{
	return buf_addf(arg, e, "%c%.*s ", !was ? '+' : !is ? '-' : '~', STR_ARG(path));
}

static void check_diff(const struct object_id *a, const struct object_id *b, const char *want)
{
	autobuf struct buf got = BUF_INIT(4096);
	struct err e = ERR_INIT;

	assert_int_equal(tree_diff(&store.objects, a, b, tell, &got, &e), 0);
	assert_string_equal(buf_str(&got).p, want);
}

static void test_changes_to_a_tree(void **state)
{
	static const struct row first[] = {
		{ TAR_FILE, "b", "1" },
		{ TAR_DIRECTORY, "d/", "" },
		{ TAR_FILE, "d/f", "1" },
		{ TAR_FILE, "d/g", "1" },
		{ TAR_SYMLINK, "l", "b" },
		{ TAR_HARDLINK, "h", "b" },
		{ TAR_FILE, "b", "the last counts" },
	};
	static const struct row second[] = {
		{ TAR_FILE, "d/.wh.f", "" }, { TAR_FILE, "a", "1" },
		{ TAR_FILE, ".wh.l", "" },   { TAR_FILE, "l", "now a file" },
		{ TAR_FILE, ".ENV", "s" },
	};
	const struct take_result one = take(first, ARRAY_LEN(first), NULL, false);
	const struct take_result two = take(second, ARRAY_LEN(second), &one.tree, true);

	assert_int_equal(one.count, 6);
	assert_int_equal(one.bytes, 2 * strlen("the last counts") + 2);
	assert_int_equal(two.count, 6);
	assert_int_equal(two.left_out, 1);
	assert_string_equal(two.names, ".ENV");
	check_diff(NULL, &one.tree, "+b +d +d/f +d/g +h +l ");
	check_diff(&one.tree, &two.tree, "+a -d/f -l +l ");
	check_diff(&two.tree, &one.tree, "-a +d/f -l +l ");
}

static void test_marks_are_all_that_is_needed(void **state)
{
	static const struct row rows[] = { { TAR_FILE, "d/e/f", "1" }, { TAR_FILE, "g", "1" } };
	const struct take_result r = take(rows, ARRAY_LEN(rows), NULL, false);
	struct object_id unneeded;
	struct marker m;
	struct err e = ERR_INIT;
	int result;

	assert_int_equal(
		objects_put(&store.objects, OBJECT_PIECE, STR_LIT("unneeded"), &unneeded, &e), 0);
	marker_init(&m, &store.objects);
	assert_int_equal(marker_tree(&m, &r.tree, &e), 0);
	while ((result = marker_step(&m, &e)) == 0)
		;
	assert_int_equal(result, 1);
	assert_int_equal(m.ids.n, 4); /* three directories and one piece */
	assert_true(id_set_has(&m.ids, &r.tree) && !id_set_has(&m.ids, &unneeded));
	marker_fini(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_damage_is_seen, setup, teardown),
		cmocka_unit_test_setup_teardown(test_files_in_pieces, setup, teardown),
		cmocka_unit_test_setup_teardown(test_changes_to_a_tree, setup, teardown),
		cmocka_unit_test_setup_teardown(test_marks_are_all_that_is_needed, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
