/*
 * What is stored of workspaces, and what comes into them. The first byte picks: a directory, a list
 * of a file's pieces, names that are left out, or an archive that becomes a tree. What is accepted
 * is in its one canonical form and within its bounds, and is read again as it was written.
 */
#include <ctype.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "fuzz.h"
#include "hub/workspace/leave_out.h"
#include "hub/workspace/take.h"
#include "hub/workspace/walk.h"

static void check_directory(struct str bytes)
{
	autobuf struct buf again = BUF_INIT(OBJECT_MAX);
	struct err e = ERR_INIT;
	size_t n = 0;
	autofree struct tree_entry *entries = tree_read(bytes, &n, &e);

	MUST(entries || e.code == ERR_WORKSPACE || e.code == ERR_LIMIT);
	for (size_t i = 0; entries && i < n; i++) {
		struct str name = entries[i].name;

		MUST(name.n > 0 && name.n <= WORKSPACE_NAME_MAX);
		MUST(!memchr(name.p, '/', name.n) && !memchr(name.p, 0, name.n));
		MUST(!str_is(name, ".") && !str_is(name, ".."));
		MUST(entries[i].mode <= 0777);
		MUST(i == 0 || tree_compare(entries[i - 1].name, name) < 0);
		MUST(tree_write(&again, &entries[i], &e) == 0);
	}
	MUST(!entries || str_eq(buf_str(&again), bytes));
}

static void check_list(struct str bytes)
{
	autobuf struct buf again = BUF_INIT(OBJECT_MAX);
	struct str rest = bytes;
	struct tree_piece p;
	struct err e = ERR_INIT;

	while (tree_list_next(&rest, &p))
		MUST(tree_list_write(&again, &p, &e) == 0);
	MUST(again.n + rest.n == bytes.n && memcmp(buf_str(&again).p, bytes.p, again.n) == 0);
}

/* Case says nothing. */
static void check_names(struct str bytes)
{
	const char *slash = memchr(bytes.p, '/', bytes.n);
	struct str folder = { bytes.p, slash ? (size_t)(slash - bytes.p) : 0 };
	struct str name = { bytes.p + folder.n + (slash != NULL),
			    bytes.n - folder.n - (slash != NULL) };
	char upper[512];

	if (name.n > sizeof(upper))
		return;
	for (size_t i = 0; i < name.n; i++)
		upper[i] = (char)toupper((unsigned char)name.p[i]);
	MUST(leave_out(folder, name) == leave_out(folder, (struct str){ upper, name.n }));
}

/* ---- archives -------------------------------------------------------------------------------- */

static struct objects store = { .dir = -1, .new = -1 };
static char store_path[] = "/tmp/fuzz-holt-XXXXXX";

static void remove_store(void)
{
	struct err e = ERR_INIT;

	(void)!folder_clear(AT_FDCWD, store_path, true, &e);
}

/* One of this process, which removes it at its end. */
static void open_store(void)
{
	struct err e = ERR_INIT;
	autoclose int dir = -1;

	if (store.dir >= 0)
		return;
	MUST(mkdtemp(store_path));
	atexit(remove_store);
	dir = open(store_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	MUST(dir >= 0 && objects_open(&store, dir, &e) == 0);
}

static void check_tree(const struct take_result *r)
{
	struct tree_walk w;
	const struct tree_entry *t;
	struct err e = ERR_INIT;
	uint32_t n = 0;

	tree_walk_init(&w, &store);
	MUST(tree_walk_enter(&w, &r->tree, &e) == 0);
	while ((t = tree_walk_next(&w))) {
		MUST(w.path.n <= WORKSPACE_PATH_MAX && w.depth <= WORKSPACE_DEPTH_MAX);
		n++;
		if (t->type == TREE_DIR)
			MUST(tree_walk_enter(&w, &t->id, &e) == 0);
	}
	MUST(n == r->count);
	tree_walk_fini(&w);
}

static void check_archive(struct str bytes, bool changes)
{
	struct take_spec spec = { .objects = &store, .changes = changes, .strict = !changes };
	struct err e = ERR_INIT;
	AUTO(take_free) struct take *t = NULL;
	autoclose int fd = memfd_create("archive", MFD_CLOEXEC);
	struct take_result r;

	open_store();
	MUST(fd >= 0 && fd_write(fd, bytes.p, bytes.n) == 0 && lseek(fd, 0, SEEK_SET) == 0);
	MUST(objects_begin(&store, &e) == 0);
	t = take_new(&spec, &e);
	MUST(t);
	if (take_read(t, fd, &e) < 0 || take_tree(t, NULL, &r, &e) < 0)
		MUST(e.code == ERR_INVALID || e.code == ERR_WORKSPACE_LARGE ||
		     e.code == ERR_TOO_LARGE || e.code == ERR_LIMIT);
	else
		check_tree(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct str bytes;

	if (!n)
		return 0;
	bytes = (struct str){ (const char *)data + 1, n - 1 };
	switch (data[0]) {
	case 'd':
		check_directory(bytes);
		break;
	case 'p':
		check_list(bytes);
		break;
	case 'n':
		check_names(bytes);
		break;
	case 'a':
	case 'c':
		check_archive(bytes, data[0] == 'c');
		break;
	}
	return 0;
}
