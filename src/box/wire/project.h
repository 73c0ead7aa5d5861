#pragma once
/*
 * What programs of the host act on in a project folder. The warden keeps it as it is
 * (box/warden/project.h), and snapshots of the folder are without it.
 */
#include <stdbool.h>

enum project_missing {
	BECOMES_DIRECTORY,
	BECOMES_WRITABLE, /* a directory that programs of the host put things into */
	BECOMES_FILE, /* where a directory would stop git */
	BECOMES_SOCKET, /* git does not show it, and snapshots are without it */
};

static const struct project_entry {
	const char *path;
	enum project_missing missing;
	const char *text; /* of the file that is made */
	/* As a repository it may be written, but not moved: what is in it has rows of its own. */
	bool open;
	bool of_home; /* made only in a folder that has another of them */
	bool bare; /* one that exists is the project's own, and may be written */
	bool otherwise; /* made only where the one before could not be */
} project_entries[] = {
	{ ".git", BECOMES_DIRECTORY, .open = true },
	{ ".git/config", BECOMES_FILE, "" },
	{ ".git/config.worktree", BECOMES_FILE, "" },
	/* With it git reads configuration from elsewhere. It names the directory that it is in. */
	{ ".git/commondir", BECOMES_FILE, ".\n" },
	{ ".git/hooks", BECOMES_DIRECTORY },
	{ ".git/modules", BECOMES_WRITABLE },
	{ ".git/worktrees", BECOMES_WRITABLE },
	{ ".claude", BECOMES_DIRECTORY },
	{ ".codex", BECOMES_DIRECTORY },
	{ ".cursor", BECOMES_DIRECTORY },
	{ ".devcontainer", BECOMES_DIRECTORY },
	{ ".gemini", BECOMES_DIRECTORY },
	{ ".holtrc", BECOMES_DIRECTORY },
	{ ".husky", BECOMES_WRITABLE },
	{ ".idea", BECOMES_DIRECTORY },
	{ ".mcp.json", BECOMES_DIRECTORY },
	{ ".vscode", BECOMES_DIRECTORY },
	{ ".zed", BECOMES_DIRECTORY },
	/* Where .git is no repository git takes the folder itself for one that has HEAD, objects
	 * and refs, or finds those two by commondir. No sandbox can make what is missing. */
	{ "commondir", BECOMES_DIRECTORY },
	{ "refs", BECOMES_SOCKET, .bare = true },
	{ "objects", BECOMES_SOCKET, .bare = true, .otherwise = true },
	{ ".bash_login", BECOMES_DIRECTORY, .of_home = true },
	{ ".bash_logout", BECOMES_DIRECTORY, .of_home = true },
	{ ".bash_profile", BECOMES_DIRECTORY, .of_home = true },
	{ ".bashrc", BECOMES_DIRECTORY, .of_home = true },
	{ ".gitconfig", BECOMES_DIRECTORY, .of_home = true },
	{ ".profile", BECOMES_DIRECTORY, .of_home = true },
	{ ".ssh", BECOMES_DIRECTORY, .of_home = true },
	{ ".zlogin", BECOMES_DIRECTORY, .of_home = true },
	{ ".zlogout", BECOMES_DIRECTORY, .of_home = true },
	{ ".zprofile", BECOMES_DIRECTORY, .of_home = true },
	{ ".zshenv", BECOMES_DIRECTORY, .of_home = true },
	{ ".zshrc", BECOMES_DIRECTORY, .of_home = true },
};
