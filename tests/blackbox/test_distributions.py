"""Debian and busybox as templates: as a directory, as an OCI layout that umoci made, and as skopeo
writes what docker save does."""

import os
import platform
import shutil
import subprocess

import pytest

import image_files as files

pytestmark = pytest.mark.rights

FORMS = ('layout', 'archive', 'directory')


class Template:
    """An image of one store, and what runs in its sandboxes."""

    def __init__(self, who, name):
        self.who, self.name = who, name

    def run(self, *argv, **options):
        return self.who.run('run', '--template', self.name, '--', *argv, **options)

    def sh(self, line):
        done = self.run('sh', '-c', line)
        assert done.returncode == 0, done
        return done.stdout.decode()


def forms_of(work, tar, *config):
    """The same root in each form, readable for everybody."""
    layout = files.by_umoci(work + '/layout', tar, *config)
    found = {'layout': layout, 'archive': files.by_skopeo(layout, work + '/archive', 'made:1'),
             'directory': files.unpacked(tar, work + '/directory')}
    subprocess.run(['chmod', '-R', 'a+rX', *found.values()], check=True)
    return found


def check_tools():
    missing = [name for name in ('umoci', 'skopeo', 'dpkg-query') if not shutil.which(name)]
    if missing:
        pytest.skip(f'{missing[0]} is not installed, or this is no Debian: scripts/deps test')


def imported(who, source, name):
    done = who.run('images', 'import', source, name, timeout=120)
    assert done.returncode == 0, done.stderr
    if who.uid and who.run('run', '--template', name, '--', 'true').returncode == 125:
        pytest.skip('users without privileges have no whole overlays on this kernel')
    return Template(who, name)


@pytest.fixture(scope='session')
def debian_forms(me):
    check_tools()
    work = os.path.join(me.top, 'debian')  # open to everybody, which pytest's own folders are not
    os.mkdir(work)
    forms = forms_of(work, files.debian_tar(work + '/tar', 'apt', 'passwd', 'python3-minimal'),
                     '--config.cmd', '/bin/bash')
    set_user = subprocess.run(['tar', '-tvf', work + '/tar'], capture_output=True, text=True,
                              check=True).stdout
    # what must be inert inside
    assert any(line.startswith('-rws') and line.endswith('/passwd')
               for line in set_user.splitlines())
    yield forms
    shutil.rmtree(work)


@pytest.fixture
def debians(who, debian_forms):
    """The image in each form for root; a user has it from an archive."""
    found = {form: imported(who, debian_forms[form], f'debian-{form}')
             for form in (FORMS if not who.uid else FORMS[1:2])}
    yield found
    shutil.rmtree(os.path.join(who.env['XDG_DATA_HOME'], 'holt/images'))


def test_debian(debians):
    """Who runs, what the distribution's own tools say, and that nobody gains anything."""
    release = platform.freedesktop_os_release()
    for debian in debians.values():
        assert (debian.sh('. /etc/os-release; echo "$ID-$VERSION_ID"; cat /etc/debian_version; '
                          'id -un; id -u; echo $HOME; pwd') ==
                f'{release["ID"]}-{release.get("VERSION_ID", "")}\n'
                f'{open("/etc/debian_version", encoding="ascii").read()}agent\n1000\n/root\n'
                '/workspace\n')
        assert (debian.sh('find / -xdev -perm /6000 | wc -l; passwd -d root >/dev/null 2>&1; '
                          'id -u; grep NoNewPrivs /proc/self/status') ==
                '0\n1000\nNoNewPrivs:\t1\n')
        assert debian.sh('dpkg-query -W -f "\\${Essential}" bash; perl -e "print 6*7"; '
                         'python3 -c "print(6*7)"; echo abc | sed s/b/d/') == 'yes4242\nadc\n'
    debian = next(iter(debians.values()))
    assert (debian.sh('getent passwd root daemon | cut -d: -f1; head -1 /etc/passwd | cut -d: '
                      '-f1,3; ls -ld /root | cut -c1-10') ==
            'root\ndaemon\nagent:1000\ndrwx------\n')
    assert (debian.run('su', '-c', 'id -u').returncode != 0
            and debian.run('mount', '-t', 'tmpfs', 'x', '/mnt').returncode != 0)
    assert debian.sh('locale -a | grep -i c.utf; LC_ALL=C.UTF-8 python3 -c "print(chr(233), '
                     'len(chr(233).encode()))"').split()[-2:] == ['é', '2']
    listed = debian.sh('apt list --installed 2>/dev/null')
    assert 'bash/' in listed and 'python3-minimal/' in listed
    assert 'network' in debian.sh('cat /etc/resolv.conf') and debian.sh(
        'getent hosts localhost | grep -c localhost; cat /etc/hostname') == '1\nsandbox\n'
    assert debian.sh('cd /tmp && cat > a.py <<"END"\nimport subprocess\n'
                     'with open("/tmp/f", "w") as f:\n'
                     '    print(subprocess.run(["bash", "-c", "echo from $0", f.name[:5]], '
                     'capture_output=True, text=True).stdout, end="")\nEND\n'
                     'python3 a.py; touch /usr/bin/mine && rm /usr/bin/mine /bin/perl && '
                     '! perl -v') == 'from /tmp/\n'
    assert debian.sh('perl -e "print 1"') == '1'  # what one removes is there for the next


def test_busybox(who, tmp_path):
    """As it installs itself, with the same answers in each form."""
    check_tools()
    root, work = str(tmp_path / 'root'), os.path.join(who.work, 'busybox')
    os.makedirs(root + '/bin')
    os.mkdir(work)
    shutil.copy('/bin/busybox', root + '/bin/busybox')
    subprocess.run(['chroot', root, '/bin/busybox', '--install', '/bin'] if os.getuid() == 0 else
                   [root + '/bin/busybox', '--install', '-s', root + '/bin'], check=True,
                   capture_output=True)
    for name in os.listdir(root + '/bin'):
        if os.path.islink(f'{root}/bin/{name}'):
            os.unlink(f'{root}/bin/{name}')
            os.link(root + '/bin/busybox', f'{root}/bin/{name}')
    tar = str(tmp_path / 'tar')
    subprocess.run(['tar', '-C', root, '-cf', tar, '.'], check=True)
    try:
        forms = forms_of(work, tar, '--config.cmd', 'sh')
        told = set()
        for form in FORMS if not who.uid else FORMS[:1]:
            box = imported(who, forms[form], 'busybox-' + form)
            told.add(box.sh('id -u; id -un; pwd; ls /bin | wc -l; stat -c %h /bin/sh; echo b a | '
                            'tr " " "\\n" | sort | xargs; awk "BEGIN { print 6*7 }"; '
                            'cat /etc/hostname; echo x > /bin/new; ls /bin/new; '
                            'busybox | head -1 | cut -d" " -f1'))
        assert len(told) == 1 and told.pop().split('\n')[:3] == ['1000', 'agent',
                                                                 '/workspace'], told
    finally:
        shutil.rmtree(work)
        shutil.rmtree(os.path.join(who.env['XDG_DATA_HOME'], 'holt/images'), ignore_errors=True)
