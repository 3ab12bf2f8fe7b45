#!/bin/sh
# Lays out the root file system of the image: the executable, the C library that it is linked with, and what a user and a
# resolver need. The Dockerfile runs it, and so does the test that enters the result.
#
#   image.sh ROOT amd64|arm64 EXECUTABLE LIBC    LIBC: a folder into which Debian's package libc6 is unpacked, or /
set -eu
root=$1 architecture=$2 executable=$3 libc=${4%/}
case $architecture in
  amd64) libraries=lib/x86_64-linux-gnu loader=lib64/ld-linux-x86-64.so.2 ;;
  arm64) libraries=lib/aarch64-linux-gnu loader=lib/ld-linux-aarch64.so.1 ;;
  *) echo "image.sh: $architecture is neither amd64 nor arm64" >&2; exit 1 ;;
esac

mkdir -p "$root/usr/local/bin" "$root/etc" "$root/$libraries" "$root/${loader%/*}" "$root/usr/share/doc/libc6"
cp -L "$libc/$libraries/${loader##*/}" "$root/$loader"
for name in libc.so.6 libdl.so.2 libm.so.6 libpthread.so.0; do
  cp -L "$libc/$libraries/$name" "$root/$libraries/$name"
done
cp -L "$libc/usr/share/doc/libc6/copyright" "$root/usr/share/doc/libc6/copyright"
cp "$executable" "$root/usr/local/bin/postrider"
chmod 755 "$root/usr/local/bin/postrider"

echo 'postrider:x:65532:65532:Postrider:/data:/nonexistent' > "$root/etc/passwd"
echo 'postrider:x:65532:' > "$root/etc/group"
echo 'hosts: files dns' > "$root/etc/nsswitch.conf"
mkdir -p "$root/tmp" && chmod 1777 "$root/tmp"
# Its mode and its owner are those of a new volume, too.
mkdir -p "$root/data" && chmod 700 "$root/data" && chown 65532:65532 "$root/data"
