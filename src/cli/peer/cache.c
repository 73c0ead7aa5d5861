/*
 * Remembers what was found out about servers, one line each, the newest first: "KEY WIRE ERA",
 * where KEY is a hash of how the server is named. It saves the next connection a trial and is
 * trusted for nothing else. A new file is renamed over the old one: of two concurrent writers one
 * loses, and no reader sees half a file.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/id.h"
#include "cli/common/home.h"
#include "cli/peer/internal.h"

enum { LINES = 200, LINE = 24, FILE_MAX = LINES * LINE };

static const char file_name[] = "mcp-servers";

/* FNV-1a: a collision gains an attacker nothing. */
static uint64_t cache_mix(uint64_t h, const char *z)
{
	do
		h = (h ^ (unsigned char)*z) * 0x100000001b3u;
	while (*z++);
	return h;
}

uint64_t peer_cache_key(const struct mcp_target *t)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (const char *const *a = t->argv; a && *a; a++)
		h = cache_mix(h, *a);
	h = cache_mix(h, t->cwd ? t->cwd : "");
	h = cache_mix(h, t->unix_socket ? t->unix_socket : "");
	return cache_mix(h, t->url ? t->url : "");
}

/* Reads the file; 0 if there is none that we own. */
static size_t read_lines(const char *path, char ret[FILE_MAX + 1])
{
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid())
		return 0;
	n = read(fd, ret, FILE_MAX);
	return n > 0 ? (size_t)n : 0;
}

static const char *next_line(const char *line)
{
	const char *end = strchr(line, '\n');

	return end ? end + 1 : line + strlen(line);
}

static bool read_line(const char *line, uint64_t *ret_key, struct mcp_found *ret)
{
	unsigned wire, era;

	if (sscanf(line, "%16" SCNx64 " %1u %1u", ret_key, &wire, &era) != 3)
		return false;
	*ret = (struct mcp_found){ (enum mcp_wire)wire, (enum mcp_era)era };
	return wire >= MCP_WIRE_STDIO && wire <= MCP_WIRE_SSE && era >= MCP_LEGACY &&
	       era <= MCP_MODERN;
}

struct mcp_found peer_cache_find(uint64_t key)
{
	char path[PATH_MAX], text[FILE_MAX + 1] = "";
	struct mcp_found found;
	struct err e;
	uint64_t k;

	if (home_cache(file_name, path, &e) == 0)
		text[read_lines(path, text)] = '\0';
	for (const char *line = text; *line; line = next_line(line)) {
		if (read_line(line, &k, &found) && k == key)
			return found;
	}
	return (struct mcp_found){ .wire = MCP_WIRE_FIND };
}

/* Puts that line first; false if it is there already. */
static bool change(const char *old, uint64_t key, struct mcp_found found, char ret[FILE_MAX + 1])
{
	int n = snprintf(ret, FILE_MAX + 1, "%016" PRIx64 " %u %u\n", key, found.wire, found.era);
	struct mcp_found was;
	uint64_t k;

	for (const char *line = old; *line; line = next_line(line)) {
		if (!read_line(line, &k, &was))
			continue;
		if (k == key && was.wire == found.wire && was.era == found.era)
			return false;
		if (k != key && n + LINE <= FILE_MAX)
			n += snprintf(ret + n, LINE, "%016" PRIx64 " %u %u\n", k, was.wire,
				      was.era);
	}
	return true;
}

void peer_cache_keep(uint64_t key, struct mcp_found found)
{
	char path[PATH_MAX], temporary[PATH_MAX + ID_MAX + 1], id[ID_MAX];
	char old[FILE_MAX + 1] = "", text[FILE_MAX + 1];
	autoclose int fd = -1;
	struct err e;
	size_t n;

	if (home_cache(file_name, path, &e) < 0)
		return;
	old[read_lines(path, old)] = '\0';
	if (!change(old, key, found, text))
		return;
	id_make(id, "new");
	snprintf(temporary, sizeof(temporary), "%s.%s", path, id);
	fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	n = strlen(text);
	if (fd >= 0 && (write(fd, text, n) != (ssize_t)n || rename(temporary, path) < 0))
		unlink(temporary);
}
