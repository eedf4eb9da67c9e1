# SPDX-License-Identifier: MIT
# Certificates for the tests, made with the openssl command: authorities in $pki/NAME.ca, what they issue in $pki/NAME.{crt,key}.
pki=$tmp/pki

# pki_ca NAME [CA]: an authority with a certificate of its own, or one that CA issued (then it is $pki/NAME.crt, too).
pki_ca() {
	mkdir -p "$pki/$1.db"
	openssl ecparam -name prime256v1 -genkey -noout -out "$pki/$1.ca.key" 2>/dev/null
	if [ $# = 1 ]; then
		openssl req -new -x509 -key "$pki/$1.ca.key" -subj "/CN=authority $1" -days 30 -out "$pki/$1.ca" 2>/dev/null
	else
		openssl req -new -key "$pki/$1.ca.key" -subj "/CN=authority $1" -addext basicConstraints=critical,CA:true -out "$pki/$1.csr" 2>/dev/null &&
			openssl ca -batch -notext -config "$pki/$2.cnf" -in "$pki/$1.csr" -out "$pki/$1.ca" 2>"$pki/log" &&
			cp "$pki/$1.ca" "$pki/$1.crt" || diag <"$pki/log"
	fi
	: >"$pki/$1.db/index"
	echo 01 >"$pki/$1.db/crlnumber"
	cat >"$pki/$1.cnf" <<-C
		[ca]
		default_ca = this
		[this]
		database = $pki/$1.db/index
		crlnumber = $pki/$1.db/crlnumber
		new_certs_dir = $pki/$1.db
		certificate = $pki/$1.ca
		private_key = $pki/$1.ca.key
		default_md = sha256
		default_days = 30
		default_crl_days = 30
		rand_serial = yes
		policy = any
		unique_subject = no
		copy_extensions = copy
		[any]
		commonName = optional
	C
}

# pki_issue CA FILE CN SAN [ARG …]: ARGs are openssl ca's, as -startdate, -enddate. SAN may be empty.
pki_issue() {
	local ca=$1 file=$2 cn=$3 san=$4
	shift 4
	[ -e "$pki/$file.key" ] || (umask 077 && openssl ecparam -name prime256v1 -genkey -noout -out "$pki/$file.key" 2>/dev/null)
	openssl req -new -key "$pki/$file.key" -subj "/CN=$cn" ${san:+-addext "subjectAltName=$san"} -out "$pki/$file.csr" 2>/dev/null &&
		openssl ca -batch -notext -config "$pki/$ca.cnf" -in "$pki/$file.csr" -out "$pki/$file.crt" "$@" 2>"$pki/log" || diag <"$pki/log"
}

# pki_crl CA [FILE …]: revokes them, and makes the list $pki/CA.crl.
pki_crl() {
	local ca=$1 f
	shift
	for f; do openssl ca -config "$pki/$ca.cnf" -revoke "$pki/$f.crt" 2>/dev/null; done
	openssl ca -gencrl -config "$pki/$ca.cnf" -out "$pki/$ca.crl" 2>/dev/null
}

# The options of a program that shows FILE and trusts CA.
tls() { echo --tls-cert $pki/$1.crt --tls-key $pki/$1.key --tls-ca $pki/$2.ca; }
