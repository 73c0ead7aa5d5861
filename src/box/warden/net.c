/*
 * Network namespaces made in advance. To make one takes as long as the rest of a sandbox, so a
 * process of its own makes a few, one after another, and sends each to the warden.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/sock.h"
#include "box/warden/internal.h"

enum { RETRY_MS = 1000 };

static _Noreturn void maker_main(int socket, uint32_t n)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (uint32_t i = 0; i < n; i++) {
		autoclose int net = -1;

		if (spawn_make_net() == 0)
			net = openat(warden.host.proc, "self/ns/net", O_RDONLY | O_CLOEXEC);
		if (net < 0 || sock_send(socket, "", 1, &net, 1, 0) < 0)
			_exit(1);
	}
	_exit(0);
}

static void end_maker(void)
{
	unwatch(&warden.net_maker); /* this ends it if it is still at work */
	if (warden.net_maker_pid > 0)
		waitpid(warden.net_maker_pid, NULL, 0);
}

bool nets_full(void)
{
	return warden.n_nets >= warden.want_nets || warden.net_maker >= 0;
}

void nets_refill(void)
{
	int sockets[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
		return;
	warden.net_maker_pid = fork();
	if (warden.net_maker_pid == 0)
		maker_main(sockets[1], warden.want_nets - warden.n_nets);
	close(sockets[1]);
	warden.net_maker = sockets[0];
	if (warden.net_maker_pid < 0 || watch(warden.net_maker, NULL, TAG_NET) < 0) {
		log_warn("no network namespaces can be made in advance");
		warden.want_nets = 0;
		end_maker();
	}
}

void net_arrived(void)
{
	size_t n_fds = 1;
	char byte;
	int net;

	if (sock_recv(warden.net_maker, &byte, 1, &net, &n_fds, 0) == 1) {
		if (n_fds && warden.n_nets < NETS_MAX)
			warden.nets[warden.n_nets++] = net;
		return;
	}
	if (warden.n_nets < warden.want_nets) /* it failed: meanwhile sandboxes make their own */
		warden.refill_at = clock_ms() + RETRY_MS;
	end_maker();
}

int net_take(void)
{
	return warden.n_nets ? warden.nets[--warden.n_nets] : -1;
}

void nets_fini(void)
{
	if (warden.net_maker >= 0)
		end_maker();
	while (warden.n_nets)
		close(warden.nets[--warden.n_nets]);
}
