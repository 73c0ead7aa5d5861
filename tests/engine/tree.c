#include "tree.h"

#include <stdlib.h>

static const char first_step[] =
	"mkdir -p tree && cd tree && echo plain > plain && echo twice > one && ln one two &&"
	"mkdir -p dir/sub/deep && ln one dir/three && echo x > dir/sub/x && "
	"echo y > dir/sub/deep/y &&"
	"mkdir gone && echo g > gone/g && mkdir again && echo a > again/a && echo b > again/b &&"
	"mkdir moved && echo m > moved/m && echo cut > cut && echo old > mode && "
	"echo over > over &&"
	"mkdir -m 1777 sticky && mkdir -m 500 readonly && mkdir -m 0 shut && echo s > sticky/s";

static const char second_step[] =
	"cd tree && ln -s plain link && ln -s /no/where dangling && ln -s link chain && "
	"mkfifo pipe &&"
	"truncate -s 50M hole && printf end | dd of=hole bs=1 seek=40000000 conv=notrunc "
	"2>/dev/null &&"
	"head -c 3000000 /dev/zero | tr '\\0' z > large && : > empty && rm -r gone && rm cut &&"
	"rm -r again && mkdir again && echo c > again/c && chmod 4711 mode 2>/dev/null || "
	"chmod 711 mode;"
	"mv moved to 2>/dev/null || { cp -a moved to && rm -r moved; };"
	"echo more >> over && chmod 640 over && echo $'odd\\nname' > $'odd\\nname' &&"
	"p=$(printf %0250d 1) && echo long > $p && ln two dir/four &&"
	"mkdir wide && (cd wide && seq 300 | xargs touch) &&"
	"touch -d @1.25 plain && touch -d @2000000000.75 dir && touch -h -d @12345.5 link";

/* Beside what a shell can do: extended attributes and sockets. */
static const char third_step[] = "import os, socket\n"
				 "os.chdir('/workspace/tree')\n"
				 "for f in ('plain', 'dir', 'over'):\n"
				 "    try: os.setxattr(f, 'user.holt', b'kept\\0' * 10)\n"
				 "    except OSError as e: print(e)\n"
				 "socket.socket(socket.AF_UNIX).bind('socket')\n"
				 "os.utime('socket', (5, 6))\n";

static const char describe[] =
	"cd /workspace/tree && chmod u+rx shut && {"
	" find . ! -type d -printf '%y %m %n %s %T@ %u:%g %p -> %l\\n' | sort -t ' ' -k 7;"
	" find . -type d -printf '%y %m %T@ %u:%g %p\\n' | sort -t ' ' -k 5; du -k hole | "
	"tr '\\t' ' '; find . -type f -print0 | sort -z |"
	" xargs -0 md5sum; test one -ef two && test one -ef dir/three && echo linked;"
	" test two -ef dir/four && echo linked later; }; chmod 0 shut";

static const char describe_attributes[] =
	"import os\n"
	"for d, ds, fs in sorted(os.walk('/workspace/tree')):\n"
	"    for f in sorted(ds + fs):\n"
	"        p = os.path.join(d, f)\n"
	"        try: l = os.listxattr(p, follow_symlinks=False)\n"
	"        except OSError: continue\n"
	"        for a in l: print(p, a, os.getxattr(p, a, follow_symlinks=False))\n";

void tree_make(struct sandbox *sb, bool layered)
{
	sh(sb, first_step);
	if (layered)
		fork_of(sb, 1);
	sh(sb, second_step);
	put(sb, "/tmp/describe", describe);
	put(sb, "/tmp/attributes.py", describe_attributes);
	if (!has_python(sb))
		return;
	put(sb, "/tmp/third.py", third_step);
	sh(sb, "python3 /tmp/third.py");
}

const char *tree_describe(struct sandbox *sb)
{
	if (has_python(sb))
		return sh(sb, ". /tmp/describe; python3 /tmp/attributes.py");
	return sh(sb, ". /tmp/describe");
}
