# SPDX-License-Identifier: MIT
# bash completion of rgpu(1).
_rgpu()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} i
	COMPREPLY=()
	if [ "$COMP_CWORD" = 1 ]; then
		COMPREPLY=($(compgen -W 'run join status doctor bench cdi bug-report help --help --version' -- "$cur"))
		return
	fi
	case $prev in
	--key | --tls-cert | --tls-key | --tls-ca | --output | --csv | --svg) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	--root) COMPREPLY=($(compgen -d -- "$cur")); return ;;
	--server) COMPREPLY=($(compgen -A hostname -- "$cur")); return ;;
	esac
	case ${COMP_WORDS[1]} in
	run)
		# From the command on, it is that command's own completion.
		for ((i = 2; i < COMP_CWORD; i++)); do
			case ${COMP_WORDS[i]} in
			--server | --key | --tls-cert | --tls-key | --tls-ca | --auth) i=$((i + 1)) ;;
			--) ;;
			*) declare -F _command_offset >/dev/null && _command_offset $i; return ;;
			esac
		done
		case $cur in
		-*) COMPREPLY=($(compgen -W '--server --key --tls-cert --tls-key --tls-ca --auth --fp16-uploads --help --' -- "$cur")) ;;
		*) COMPREPLY=($(compgen -c -- "$cur")) ;;
		esac ;;
	join) COMPREPLY=($(compgen -W '--no-check --root --help -' -- "$cur")) ;;
	status) COMPREPLY=($(compgen -W '--help' -- "$cur")) ;;
	doctor) COMPREPLY=($(compgen -W '--json --list --root --help' -- "$cur")) ;;
	bench) COMPREPLY=($(compgen -W '--server --key --tls-cert --tls-key --tls-ca --auth --device --quick --csv --svg --help' -- "$cur")) ;;
	cdi) COMPREPLY=($(compgen -W 'generate --output --root --help' -- "$cur")) ;;
	bug-report) COMPREPLY=($(compgen -W '--output --help' -- "$cur")) ;;
	esac
}
complete -o filenames -F _rgpu rgpu
