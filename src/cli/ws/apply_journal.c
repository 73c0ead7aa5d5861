/*
 * Journals of `holt ws apply`. One is written under another name, synced and renamed, so it is
 * there as a whole or not at all.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/folder.h"
#include "box/archive/tree.h"
#include "cli/ws/apply.h"

int apply_plan_id(struct apply_plan *p, struct err *e)
{
	unsigned char bytes[APPLY_ID / 2];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return err_sys(e, errno, "make a name");
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(p->id + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

int apply_journal_write(const struct apply *a, const char *name, struct err *e)
{
	int fd = openat(a->data, "new", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
			0600);
	FILE *to = fd < 0 ? NULL : fdopen(fd, "w");
	bool failed;

	if (!to)
		return err_sys(e, errno, "write the journal");
	apply_plan_write(to, &a->plan);
	failed = fflush(to) != 0 || ferror(to) || fsync(fd) < 0;
	if (fclose(to) != 0 || failed || renameat(a->data, "new", a->data, name) < 0 ||
	    fsync(a->data) < 0)
		return err_sys(e, errno, "write the journal");
	return 0;
}

int apply_journal_read(const struct apply *a, const char *name, bool heads, struct apply_plan *ret,
		       struct err *e)
{
	int fd = openat(a->data, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	FILE *from = fd < 0 ? NULL : fdopen(fd, "r");
	bool fine;

	if (!from)
		return errno == ENOENT ? 0 : err_sys(e, errno, "read the journal");
	fine = apply_plan_read(from, heads, ret, e);
	fclose(from);
	return fine ? 1 : err_set(e, ERR_IO, "the journal of this folder is damaged");
}

bool apply_journal_has(const struct apply *a, const char *name)
{
	return faccessat(a->data, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int apply_journal_end(const struct apply *a, struct err *e)
{
	return (unlinkat(a->data, "interrupted", 0) < 0 && errno != ENOENT) || fsync(a->data) < 0
		     ? err_sys(e, errno, "end the journal")
		     : 0;
}

void apply_journal_clean(const struct apply *a)
{
	struct apply_plan last = { 0 }, interrupted = { 0 };
	struct err ignored = ERR_INIT;
	autofolder struct folder f = FOLDER_NONE;

	if (apply_journal_read(a, "last", true, &last, &ignored) < 0 ||
	    apply_journal_read(a, "interrupted", true, &interrupted, &ignored) < 0)
		return;
	f = folder_at(a->data, ".");
	/* The next apply removes what this one does not see. */
	while (folder_next(&f) > 0) {
		const char *name = f.entry->d_name;

		if (strncmp(name, "saved-", 6) == 0 && strcmp(name + 6, last.id) != 0 &&
		    strcmp(name + 6, interrupted.id) != 0)
			tree_remove(a->data, name);
	}
}
