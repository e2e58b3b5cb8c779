package shell

// Help is the part of the command's help that says what patterns are. Its deny list names commands that remove or overwrite much at
// once, become another user, reach other machines, or run text in another language.
const Help = `The tool execute_command runs a command line and returns its output and exit code. Without --allow and
--deny everything runs. With one of them, every command of the line must fit: in pipes, lists, loops and
substitutions, by its name or by its path's last part. A pattern is a name, or its beginning with a star.
--deny wins. Commands that run others (env, xargs, sh, eval, ...) need their own name in --allow, without a
star, and so do functions ("function") and variables such as PATH. A line that cannot be parsed is denied.

  mcsh server shell -w ~/project --allow 'ls,cat,grep,go,git'
  mcsh server shell -w ~/project --sandbox -t 300

A deny list to begin with:

  --deny 'rm*,rmdir,unlink,shred,dd,mkfs*,mkswap,wipefs,fdisk,parted,truncate,mv,chmod' \
  --deny 'chown,chgrp,ln,kill*,pkill,shutdown,reboot,halt,poweroff,systemctl,service,mount' \
  --deny 'umount,iptables,nft,passwd,useradd,usermod,userdel,curl,wget,nc*,ncat,socat,ssh*' \
  --deny 'scp,sftp,rsync,telnet,ftp,python*,perl*,ruby*,node*,php*,lua*,awk*,gawk,mawk,find' \
  --deny 'docker,podman,kubectl'

A deny list stops accidents, an allow list stops agents, and only --sandbox stops programs: an allowed program
that runs others (git, make, find -exec) runs what it likes. docs/shell.md says more.`
