#include "cli/agent/news.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/link/link.h"

enum { HOST_MAX = 254, TOLD_MAX = 64, WHEN = sizeof("2026-01-31T12:00:00") };

struct follower {
	const char *sandbox;
	const struct field_strs *silent;
	int fd;
	bool plain; /* for standard error */
	char since[WHEN];
	char told[TOLD_MAX][HOST_MAX + 8]; /* each once, of those told last */
	unsigned n_told;
};

/* Programs of a sandbox choose the name: it must mean nothing to a shell. */
static bool news_host(struct str host, char ret[HOST_MAX])
{
	static const char chars[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789.-_:";

	snprintf(ret, HOST_MAX, "%.*s", STR_CUT(host, HOST_MAX - 1));
	return *ret && *ret != '-' && host.n < HOST_MAX && !ret[strspn(ret, chars)];
}

static bool news_told(struct follower *f, const char *what)
{
	for (unsigned i = 0; i < TOLD_MAX && i < f->n_told; i++) {
		if (strcmp(f->told[i], what) == 0)
			return true;
	}
	snprintf(f->told[f->n_told++ % TOLD_MAX], sizeof(f->told[0]), "%s", what);
	return false;
}

static bool news_silent(const struct follower *f, const char *host)
{
	size_t n = strlen(host);

	for (size_t i = 0; i < f->silent->n; i++) {
		struct str s = f->silent->p[i];

		if (str_starts(s, host) && (s.n == n || s.p[n] == ':'))
			return true;
	}
	return false;
}

static void news_tell(struct follower *f, const struct json_val *detail)
{
	struct str reason = json_str(json_get(detail, "reason"));
	char host[HOST_MAX], at[HOST_MAX + 8];
	uint64_t port = 0;

	if (!news_host(json_str(json_get(detail, "host")), host) || news_silent(f, host))
		return;
	json_uint64(json_get(detail, "port"), &port);
	if (port == 0 || port == 80 || port == 443)
		snprintf(at, sizeof(at), "%s", host);
	else
		snprintf(at, sizeof(at), "%s:%u", host, (unsigned)port % 65536);
	if (news_told(f, at))
		return;
	if (str_is(reason, "not_granted"))
		dprintf(f->fd, "%s%s is not allowed; allow it: holt net allow %s %s\n",
			f->plain ? "holt: " : "", at, f->sandbox, at);
	else
		dprintf(f->fd, "%s%s was not reached (%.*s): holt events %s\n",
			f->plain ? "holt: " : "", at, STR_CUT(reason, 64), f->sandbox);
}

static int news_take(void *arg, const struct json_val *line, struct err *e)
{
	struct follower *f = arg;
	struct str at = json_str(json_get(line, "at")), kind = json_str(json_get(line, "kind"));
	AUTO(json_free) struct json_doc *doc = NULL;
	struct err none;

	if ((!str_is(kind, "network.denied") && !str_is(kind, "network.failed")) ||
	    at.n < WHEN - 1 || memcmp(at.p, f->since, WHEN - 1) < 0)
		return 0;
	doc = json_parse(json_str(json_get(line, "detail")), NULL, &none);
	if (doc)
		news_tell(f, json_root(doc));
	return 0;
}

static void news_follow(struct follower *f)
{
	struct hub_link *l;
	char path[256];
	struct err none;

	snprintf(path, sizeof(path), "/v1/events?follow=true");
	if (hub_link_query(path, sizeof(path), "sandbox", f->sandbox, &none) < 0)
		return;
	l = hub_link_open(&none);
	if (l)
		(void)!hub_link_follow(l, path, news_take, f, &none);
}

int news_start(struct news *n, const char *sandbox, const struct field_strs *silent, bool lines,
	       struct err *e)
{
	static struct follower f; /* large */
	pid_t parent = getpid();
	time_t now = time(NULL);
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, errno, "make a pipe");
	f = (struct follower){ .sandbox = sandbox,
			       .silent = silent,
			       .fd = lines ? ends[1] : STDERR_FILENO,
			       .plain = !lines };
	strftime(f.since, sizeof(f.since), "%Y-%m-%dT%H:%M:%S", gmtime(&now));
	fflush(NULL);
	n->pid = fork();
	if (n->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() == parent)
			news_follow(&f);
		_exit(0);
	}
	close(ends[1]);
	if (lines && n->pid > 0)
		n->fd = ends[0];
	else
		close(ends[0]);
	return n->pid < 0 ? err_sys(e, errno, "start a process") : 0;
}

void news_stop(struct news *n)
{
	if (n->pid > 0) {
		kill(n->pid, SIGKILL);
		while (waitpid(n->pid, NULL, 0) < 0 && errno == EINTR)
			continue;
	}
	if (n->fd >= 0)
		close(n->fd);
	*n = NEWS_INIT;
}
