/*
 * events.idx: a mark, then entries of 24 bytes in the machine's own byte order, since the file
 * never leaves the machine and can be made again.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "agents/store/internal.h"

static const char index_mark[8] = "HOLTIDX1";

enum { ENTRY = sizeof(struct events_entry), MARK = sizeof(index_mark) };

static off_t index_offset(uint64_t i)
{
	return (off_t)(MARK + i * ENTRY);
}

int events_index_open(struct events_index *x, int folder, struct err *e)
{
	char mark[MARK];
	struct stat st;

	x->fd = openat(folder, "events.idx", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
		       0600);
	if (x->fd < 0 || fstat(x->fd, &st) < 0)
		return err_sys(e, errno, "open the index of events");
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid())
		return err_set(e, ERR_DENIED, "the index of events is not a file of this user");
	x->n = 0;
	if (st.st_size >= MARK && pread(x->fd, mark, MARK, 0) == MARK &&
	    memcmp(mark, index_mark, MARK) == 0)
		x->n = (uint64_t)(st.st_size - MARK) / ENTRY;
	else
		events_index_empty(x);
	return 0;
}

void events_index_close(struct events_index *x)
{
	if (x->fd >= 0)
		close(x->fd);
	x->fd = -1;
}

void events_index_empty(struct events_index *x)
{
	x->n = 0;
	/* Where this fails, the entries are written over those that stand, and what is left of
	 * those is found out when it is used. */
	if (ftruncate(x->fd, 0) < 0 || pwrite(x->fd, index_mark, MARK, 0) != MARK)
		return;
}

void events_index_add(struct events_index *x, const struct events_entry *entry)
{
	if (pwrite(x->fd, entry, ENTRY, index_offset(x->n)) == ENTRY)
		x->n++;
}

bool events_index_get(const struct events_index *x, uint64_t i, struct events_entry *ret)
{
	return i < x->n && pread(x->fd, ret, ENTRY, index_offset(i)) == ENTRY;
}

struct events_entry events_index_find(const struct events_index *x, enum events_by by,
				      uint64_t most)
{
	struct events_entry found = { 0 }, entry;
	uint64_t low = 0, high = x->n;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (events_index_get(x, middle, &entry) &&
		    (by == EVENTS_BY_SEQ ? entry.seq : entry.before) <= most) {
			found = entry;
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return found;
}
