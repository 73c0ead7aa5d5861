#include "cli/link/files.h"

#include <errno.h>
#include <unistd.h>

#include "base/hash.h"
#include "cli/common/file.h"

struct saving {
	struct file_out out;
	struct hash *hash; /* NULL: none is asked for */
};

static int saving_take(void *arg, struct str bytes, struct err *e)
{
	const struct saving *s = arg;

	if (s->hash)
		hash_add(s->hash, bytes.p, bytes.n);
	return file_write_fd(s->out.fd, s->out.path, bytes, e);
}

static int saving_fetch(struct saving *s, struct hub_link *l, const char *path, struct str digest,
			struct err *e)
{
	char got[HASH_HEX + 1];

	if (hub_link_download(l, path, saving_take, s, e) < 0)
		return -1;
	if (!s->hash)
		return 0;
	hash_end(s->hash, got);
	return str_is(digest, got)
		     ? 0
		     : err_set(e, ERR_SNAPSHOT,
			       "the received archive does not match the hub's digest");
}

int hub_link_save(struct hub_link *l, const char *path, const char *to, struct str digest,
		  struct err *e)
{
	AUTO(hash_free) struct hash *hash = digest.p ? hash_new(e) : NULL;
	struct saving s = { .hash = hash };

	if ((digest.p && !hash) || file_out_open(&s.out, to, e) < 0)
		return -1;
	return file_out_end(&s.out, saving_fetch(&s, l, path, digest, e) == 0, e);
}

static size_t sending_give(void *arg, char *to, size_t n, struct err *e)
{
	const int *fd = arg;
	ssize_t got;

	do {
		got = read(*fd, to, n);
	} while (got < 0 && errno == EINTR);
	if (got >= 0)
		return (size_t)got;
	err_sys(e, errno, "read the archive");
	return SIZE_MAX;
}

int hub_link_send_file(struct hub_link *l, const char *path, int fd, struct json_doc **ret,
		       struct err *e)
{
	return hub_link_send(l, path, sending_give, &fd, ret, e);
}
