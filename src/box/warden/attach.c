/* Workspaces in sandboxes: the tree of a revision becomes a frozen layer below a writable one. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/folder.h"
#include "base/mem.h"
#include "box/warden/internal.h"

#define WORKSPACE "workspace"

uint32_t chain_workspace(const struct chain *c)
{
	uint32_t i = 0;

	while (i < c->n_frozen && !c->frozen[i]->workspace)
		i++;
	return i;
}

/* 1: the layer has nothing in its /workspace, or no such directory; 0: it has; negative: errno. */
static int leaves_free(int layer)
{
	autoclose int dir = layer < 0 ? -1
				      : openat(layer, WORKSPACE,
					       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct folder f;
	int more;

	if (dir < 0)
		return layer >= 0 && errno == ENOENT ? 1 : layer < 0 ? -errno : 0;
	f = folder_at(dir, ".");
	more = folder_next(&f);
	folder_end(&f);
	return more < 0 ? -f.errnum : !more;
}

static int check_layer(int layer, struct err *e)
{
	autoclose int fd = layer;
	int free = leaves_free(fd);

	if (free < 0)
		return err_sys(e, -free, "open the layers of files");
	if (!free)
		return err_set(e, ERR_CONFLICT,
			       "/workspace is not empty: attach a workspace to a new sandbox");
	return 0;
}

/* Whether a mount of the host stands on /workspace, or in it. */
static bool is_mounted_over(const struct sandbox *b)
{
	const size_t n = strlen(WORKSPACE);

	for (uint32_t i = 0; i < b->n_mounts; i++) {
		const char *at = b->mounts[i].guest;

		while (*at == '/' || (at[0] == '.' && at[1] == '/'))
			at++;
		if (strncmp(at, WORKSPACE, n) == 0 && (!at[n] || at[n] == '/'))
			return true;
	}
	return false;
}

static int check_free(const struct sandbox *b, struct err *e)
{
	const struct chain *c = &b->chain;
	const struct layer *lowest = c->n_frozen ? c->frozen[c->n_frozen - 1] : NULL;

	if (warden.store.plain)
		return err_set(e, ERR_UNSUPPORTED,
			       "workspaces take overlays, which users without privileges have "
			       "since Linux 6.6");
	if (chain_workspace(c) < c->n_frozen)
		return err_set(e, ERR_CONFLICT, "the sandbox has a workspace already");
	if (is_mounted_over(b))
		return err_set(e, ERR_CONFLICT, "a volume is mounted on /workspace");
	if (check_layer(store_layer_open(c->upper), e) < 0)
		return -1;
	for (uint32_t i = 0; i < c->n_frozen; i++) {
		if (check_layer(store_layer_open(c->frozen[i]), e) < 0)
			return -1;
	}
	if (lowest && lowest->complete)
		return 0;
	return check_layer(open("/skel", O_RDONLY | O_DIRECTORY | O_CLOEXEC), e);
}

int sandbox_attach(const struct hub_message *in, struct err *e)
{
	const struct wm_attach *m = in->p;
	const struct wm_head done = { WM_ATTACHED, m->h.seq };
	struct sandbox *b = find_awake(m->key, e);
	struct layer *tree;
	int result;

	if (!b)
		return -1;
	if (m->how != WM_FORK_IDLE)
		return err_set(e, ERR_CONFLICT,
			       "something runs in the sandbox: attach a workspace before");
	if (check_free(b, e) < 0)
		return -1;
	tree = store_layer_workspace(&warden.store, &warden.host, m->folder, b->uid, e);
	if (!tree)
		return -1;
	result = freeze_layer(b, tree, e);
	layer_unref(tree);
	if (result == 0)
		send_hub(&done, sizeof(done), NULL, 0);
	return result;
}
