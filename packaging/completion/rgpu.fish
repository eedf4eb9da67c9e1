# SPDX-License-Identifier: MIT
# fish completion of rgpu(1).
complete -c rgpu -f
complete -c rgpu -n __fish_use_subcommand -a run -d 'run a program with rgpu\'s CUDA libraries'
complete -c rgpu -n __fish_use_subcommand -a join -d 'make this machine a client of a server'
complete -c rgpu -n __fish_use_subcommand -a status -d 'what runs now: proxy, devices, sessions'
complete -c rgpu -n __fish_use_subcommand -a doctor -d 'find what is wrong, and say how to mend it'
complete -c rgpu -n __fish_use_subcommand -a cdi -d 'write the specification for container tools'
complete -c rgpu -n __fish_use_subcommand -a bug-report -d 'collect what a report needs, without secrets'
complete -c rgpu -n '__fish_seen_subcommand_from run' -l server -x -a '(__fish_print_hostnames)' -d 'HOST:PORT'
complete -c rgpu -n '__fish_seen_subcommand_from run' -l key -r -F -d 'key file'
complete -c rgpu -n '__fish_seen_subcommand_from run' -l tls-cert -r -F -d 'certificate'
complete -c rgpu -n '__fish_seen_subcommand_from run' -l tls-key -r -F -d 'its key'
complete -c rgpu -n '__fish_seen_subcommand_from run' -l tls-ca -r -F -d 'authorities'
complete -c rgpu -n '__fish_seen_subcommand_from run' -l auth -x -a 'key cert plaintext' -d 'which is used'
complete -c rgpu -n '__fish_seen_subcommand_from run' -a '(__fish_complete_subcommand)'
complete -c rgpu -n '__fish_seen_subcommand_from join' -l no-check -d 'ask nobody'
complete -c rgpu -n '__fish_seen_subcommand_from doctor' -l json -d 'for programs'
complete -c rgpu -n '__fish_seen_subcommand_from doctor' -l list -d 'what is looked at'
complete -c rgpu -n '__fish_seen_subcommand_from join doctor cdi' -l root -x -a '(__fish_complete_directories)' -d 'another root'
complete -c rgpu -n '__fish_seen_subcommand_from cdi' -a generate
complete -c rgpu -n '__fish_seen_subcommand_from cdi bug-report' -l output -r -F -d 'file'
