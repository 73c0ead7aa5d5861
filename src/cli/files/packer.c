#include "cli/files/packer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "box/archive/tree_error.h"

/* The end of the pipe is the end of the archive only if the child succeeded. */
static size_t packer_end(struct packer *p, struct err *e)
{
	struct tree_failure f = { .what = TREE_KILLED };

	if (fd_read(p->verdict, &f, sizeof(f)) < 0)
		f = (struct tree_failure){ .what = TREE_KILLED };
	p->ended = f.what == TREE_FINE;
	if (p->ended && f.left_out)
		snprintf(p->left_out, sizeof(p->left_out), "%u: %s", f.left_out, f.path);
	if (p->ended)
		return 0;
	tree_error(&f, p->path, e);
	return SIZE_MAX;
}

size_t packer_give(void *packer, char *to, size_t n, struct err *e)
{
	struct packer *p = packer;
	ssize_t got;

	do {
		got = read(p->archive, to, n);
	} while (got < 0 && errno == EINTR);
	if (got > 0)
		return (size_t)got;
	return p->ended ? 0 : packer_end(p, e);
}

static _Noreturn void pack(const char *path, const char *name, int archive, int verdict)
{
	const struct tar_pack_opts o = { .name = name };
	struct tree_failure f;

	signal(SIGPIPE, SIG_IGN);
	tar_pack(AT_FDCWD, path, &o, archive, &f);
	if (fd_write(verdict, &f, sizeof(f)) < 0)
		_exit(1);
	_exit(0);
}

int packer_start(struct packer *p, const char *path, const char *name, struct err *e)
{
	int archive[2], verdict[2];

	if (pipe2(archive, O_CLOEXEC) < 0)
		return err_sys(e, errno, "pipe");
	if (pipe2(verdict, O_CLOEXEC) < 0) {
		close(archive[0]);
		close(archive[1]);
		return err_sys(e, errno, "pipe");
	}
	*p = (struct packer){
		.pid = fork(), .archive = archive[0], .verdict = verdict[0], .path = path
	};
	if (p->pid == 0) {
		close(archive[0]);
		close(verdict[0]);
		pack(path, name, archive[1], verdict[1]);
	}
	close(archive[1]);
	close(verdict[1]);
	if (p->pid > 0)
		return 0;
	err_sys(e, errno, "fork");
	packer_stop(p);
	return -1;
}

void packer_stop(struct packer *p)
{
	close(p->archive);
	close(p->verdict);
	if (p->pid > 0)
		waitpid(p->pid, NULL, 0);
}
