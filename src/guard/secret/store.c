/*
 * The sealed store. Of the data folder:
 *
 *	secret.key	32 random bytes (0600)
 *	secrets/NAME	the value, sealed and bound to NAME (0600)
 */
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/folder.h"
#include "base/id.h"
#include "base/log.h"
#include "base/publish.h"
#include "base/seal.h"
#include "guard/secret/internal.h"

static const char key_file[] = "secret.key", folder[] = "secrets";
static const char temp_prefix[] = ".secret"; /* of files that get their name once they are whole */

enum { LEFT_SECONDS = 60 };

/* A sealed value, with room for one too many. */
enum { SEALED_MAX = (SECRETS_MAX + 256) * 4 / 3 };

/* -1 with errno; ENOENT too where there is no data folder. */
static int store_folder(const struct secrets *s)
{
	if (s->folder < 0) {
		errno = ENOENT;
		return -1;
	}
	return openat(s->folder, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

/* By errno. A full disk here is the hub's, not a sandbox's. */
static int store_failed(struct err *e, const char *what)
{
	if (errno == ENOSPC || errno == EDQUOT)
		return err_set(e, ERR_STORE_FULL, "%s: no room on its disk", what);
	return err_sys(e, errno, "%s", what);
}

static int store_unsure(struct err *e, const char *what)
{
	err_sys(e, errno, "%s", what);
	return err_unsure(e);
}

/* A new file with these bytes, which has reached the disk; its name is free. */
static int store_write_new(int at, const char *name, const void *p, size_t n, struct err *e)
{
	autoclose int fd = openat(at, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
				  0600);

	if (fd < 0)
		return store_failed(e, "make a file in the store of secrets");
	if (fd_write(fd, p, n) == 0 && fsync(fd) == 0)
		return 0;
	store_failed(e, "write to the store of secrets");
	unlinkat(at, name, 0);
	return -1;
}

/* Several processes may make the key at once: the first that gives it its name has made it. */
static int key_make(const struct secrets *s, struct err *e)
{
	unsigned char key[SEAL_KEY_BYTES];
	char temp[ID_MAX + 8];
	int rc;

	id_make(temp, temp_prefix);
	randombytes_buf(key, sizeof(key));
	rc = store_write_new(s->folder, temp, key, sizeof(key), e);
	sodium_memzero(key, sizeof(key));
	if (rc < 0)
		return -1;
	if (linkat(s->folder, temp, s->folder, key_file, 0) < 0 && errno != EEXIST)
		rc = store_failed(e, "make the key of the store of secrets");
	unlinkat(s->folder, temp, 0);
	if (rc == 0 && fsync(s->folder) < 0)
		rc = store_failed(e, "make the key of the store of secrets");
	return rc;
}

static struct seal_ring *key_ring(const struct secrets *s, struct err *e)
{
	autowipe struct buf key = BUF_INIT(SEAL_KEY_BYTES + 1);
	AUTO(seal_ring_free) struct seal_ring *r = seal_ring_new(e);

	if (!r)
		return NULL;
	if (private_read(s->folder, key_file, &key, e) < 0 ||
	    seal_ring_add(r, buf_str(&key), e) < 0)
		return err_wrap(e, "the key of the store of secrets"), NULL;
	seal_ring_trim(r);
	return take_ptr(r);
}

static bool key_missing(const struct secrets *s)
{
	return faccessat(s->folder, key_file, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT;
}

/* The name that a sealed text belongs to. */
static struct str context_of(struct str name, char text[SECRETS_NAME_MAX + 16])
{
	int n = snprintf(text, SECRETS_NAME_MAX + 16, "secret %.*s", STR_ARG(name));

	return (struct str){ text, (size_t)n };
}

struct secret *secrets_stored(const struct secrets *s, struct str name, struct err *e)
{
	autoclose int at = secrets_check_name(name, e) < 0 ? -2 : store_folder(s);
	autobuf struct buf text = BUF_INIT(SEALED_MAX);
	autowipe struct buf value = VALUE_BUF;
	AUTO(seal_ring_free) struct seal_ring *ring = NULL;
	char file[SECRETS_NAME_MAX + 1], context[SECRETS_NAME_MAX + 16];

	if (at == -2)
		return NULL;
	snprintf(file, sizeof(file), "%.*s", STR_ARG(name));
	if (at < 0 || faccessat(at, file, F_OK, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno == ENOENT)
			secrets_unknown(name, e);
		else
			err_sys(e, errno, "open the store of secrets");
		return NULL;
	}
	ring = key_ring(s, e);
	if (!ring)
		return NULL;
	if (!buf_reserve(&value, value.max, e) || private_read(at, file, &text, e) < 0 ||
	    seal_open(ring, &value, buf_str(&text), context_of(name, context), 0, e) < 0)
		return err_wrap(e, "secret %.*s", STR_ARG(name)), NULL;
	return secret_of(name, buf_str(&value), e);
}

static int store_count(void *data, const char *name, int64_t changed_ms)
{
	++*(size_t *)data;
	return 0;
}

/* Removes temporary files of programs that were killed. A running one needs its own for a moment
 * only. */
static void store_sweep(int at)
{
	autofolder struct folder f = folder_at(at, ".");
	const time_t old = time(NULL) - LEFT_SECONDS;
	struct stat st;

	/* Another run removes what this one does not see. */
	while (folder_next(&f) > 0) {
		if (str_starts(str_of(f.entry->d_name), temp_prefix) &&
		    fstatat(at, f.entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISREG(st.st_mode) && st.st_mtim.tv_sec < old)
			unlinkat(at, f.entry->d_name, 0);
	}
}

static int store_replace(int at, const char *file, struct str text, struct err *e)
{
	char temp[ID_MAX + 8];
	int rc;

	id_make(temp, temp_prefix);
	if (store_write_new(at, temp, text.p, text.n, e) < 0)
		return -1;
	rc = publish(at, temp, file);
	if (rc > 0)
		return store_unsure(e, "write to the store of secrets");
	return rc < 0 ? store_failed(e, "write to the store of secrets") : 0;
}

int secrets_set(struct secrets *s, struct str name, struct str value, struct err *e)
{
	const struct source *src = source_find(s, name);
	char file[SECRETS_NAME_MAX + 1], context[SECRETS_NAME_MAX + 16];
	AUTO(secret_free) struct secret *fit = NULL;
	AUTO(seal_ring_free) struct seal_ring *ring = NULL;
	autobuf struct buf text = BUF_INIT(SEALED_MAX);
	autoclose int at = -1;
	size_t n = 0;

	if (secrets_check_name(name, e) < 0)
		return -1;
	if (src && src->provider != SECRETS_STORE)
		return err_set(e, ERR_CONFLICT,
			       "secret %.*s: the operator's file says that it comes from a %s",
			       STR_ARG(name), secrets_provider_names[src->provider]);
	if (s->folder < 0)
		return err_set(e, ERR_UNSUPPORTED, "only a hub with a data folder keeps secrets");
	fit = secret_of(name, value, e);
	if (!fit || store_list(s, store_count, &n, e) < 0)
		return -1;
	if (n >= SECRETS_STORED_MAX)
		return err_set(e, ERR_LIMIT, "the store has %zu secrets", n);
	if (mkdirat(s->folder, folder, 0700) < 0 && errno != EEXIST)
		return store_failed(e, "make the store of secrets");
	at = store_folder(s);
	if (at < 0)
		return err_sys(e, errno, "open the store of secrets");
	store_sweep(s->folder);
	store_sweep(at);
	if (key_missing(s) && key_make(s, e) < 0)
		return -1;
	ring = key_ring(s, e);
	snprintf(file, sizeof(file), "%.*s", STR_ARG(name));
	if (!ring || seal(ring, &text, value, context_of(name, context), UINT64_MAX, e) < 0)
		return -1;
	return store_replace(at, file, buf_str(&text), e);
}

int secrets_remove(struct secrets *s, struct str name, struct err *e)
{
	autoclose int at = store_folder(s);
	char file[SECRETS_NAME_MAX + 1];

	if (secrets_check_name(name, e) < 0)
		return -1;
	snprintf(file, sizeof(file), "%.*s", STR_ARG(name));
	if (at >= 0 && unlinkat(at, file, 0) == 0)
		return fsync(at) == 0 ? 0 : store_unsure(e, "remove from the store of secrets");
	return errno == ENOENT ? secrets_unknown(name, e)
			       : store_failed(e, "remove from the store of secrets");
}

int store_list(const struct secrets *s,
	       int (*each)(void *data, const char *name, int64_t changed_ms), void *data,
	       struct err *e)
{
	int at = store_folder(s), why = errno, rc = 0, more = 0;
	autofolder struct folder f = folder_take(at);

	if (at < 0)
		return why == ENOENT ? 0 : err_sys(e, why, "list the store of secrets");
	while (rc == 0 && (more = folder_next(&f)) > 0) {
		struct stat st;
		struct err none;

		if (secrets_check_name(str_of(f.entry->d_name), &none) == 0 &&
		    fstatat(at, f.entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISREG(st.st_mode))
			rc = each(data, f.entry->d_name,
				  (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000);
	}
	return more < 0 ? err_sys(e, f.errnum, "list the store of secrets") : rc;
}
