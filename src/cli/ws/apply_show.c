/* Shows what an apply would do, on standard output: what it prints is as hostile as its files. */
#include <fcntl.h>
#include <unistd.h>

#include "base/unified.h"
#include "cli/common/file.h"
#include "cli/common/safe.h"
#include "cli/ws/apply.h"

enum { TEXT_MAX = 512 << 10, HUNKS_MAX = 1 << 20 };

/* 1: the text; 0: it is none, or too large. An absent file is an empty text. */
static int read_text(int dir, const char *name, char type, struct buf *to)
{
	struct err ignored = ERR_INIT;
	autoclose int fd = -1;

	if (type == APPLY_NONE)
		return 1;
	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	return fd >= 0 && file_read_fd(fd, "file", to, &ignored) == 0 &&
	       !(to->n && memchr(to->p, '\0', to->n));
}

static void show_text(const struct apply *a, const struct apply_op *op)
{
	autobuf struct buf old = BUF_INIT(TEXT_MAX), new = BUF_INIT(TEXT_MAX),
			   hunks = BUF_INIT(HUNKS_MAX);
	struct err ignored = ERR_INIT;
	const char *name;
	autoclose int parent = apply_parent(a->dir, op->path, &name);
	int cut;

	/* of a new file in a new directory there is no parent yet */
	if ((parent < 0 && op->old.type != APPLY_NONE) ||
	    !read_text(parent, name, op->old.type, &old) ||
	    !read_text(a->stage, apply_number(op->n).text, op->new.type, &new)) {
		puts("... it is no text, or a large one");
		return;
	}
	cut = unified_diff(buf_str(&old), buf_str(&new), &hunks, &ignored);
	safe_text(stdout, buf_str(&hunks), 0);
	if (cut)
		puts("... more is not shown");
}

static void show_target(int dir, const char *name, const char *arrow)
{
	char target[TAR_PATH_MAX];
	ssize_t n = readlinkat(dir, name, target, sizeof(target));

	fputs(arrow, stdout);
	safe_line(stdout, (struct str){ target, n > 0 ? (size_t)n : 0 });
}

static void show_op(const struct apply *a, const struct apply_op *op)
{
	bool files = op->old.type != APPLY_LINK && op->new.type != APPLY_LINK &&
		     op->old.type != APPLY_DIR && op->new.type != APPLY_DIR;

	printf("%c ", op->new.type == APPLY_NONE ? 'D' : op->old.type == APPLY_NONE ? 'A' : 'C');
	safe_line(stdout, str_of(op->path));
	fputs(op->old.type == APPLY_DIR || op->new.type == APPLY_DIR ? "/" : "", stdout);
	if (op->kind == APPLY_RMDIR)
		fputs(" (if it is empty)", stdout);
	if (op->old.type == op->new.type && op->old.mode != op->new.mode)
		printf(" (mode %03o, was %03o)", op->new.mode, op->old.mode);
	else if (op->new.type == APPLY_FILE && op->old.type != APPLY_FILE)
		printf(" (mode %03o)", op->new.mode);
	if (op->new.type == APPLY_LINK)
		show_target(a->stage, apply_number(op->n).text, " -> ");
	putchar('\n');
	if (files && strcmp(op->old.hash, op->new.hash) != 0)
		show_text(a, op);
}

void apply_show(const struct apply *a)
{
	for (size_t i = 0; i < a->plan.n; i++)
		show_op(a, &a->plan.ops[i]);
}
