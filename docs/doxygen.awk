# Makes Doxygen's comments of the headers' plain ones: a comment line becomes ///, one behind code ///<, the first line is about
# the file. Lines that are indented by three are code. Outside of `code`, what Doxygen would take for a command, a tag or a link
# is escaped.
function plain(text,    parts, n, i, out) {
  n = split(text, parts, "`")
  for (i = 1; i <= n; ++i) {
    if (i % 2) gsub(/[\\@<>#%]/, "\\\\&", parts[i])
    out = out (i > 1 ? "`" : "") parts[i]
  }
  return out
}
function comment(indent, text) {
  if ((text ~ /^   +[^ *]/) != code) print indent "///"
  code = text ~ /^   +[^ *]/
  print indent "///" (code ? "    " text : plain(text))
}
FNR == 1 { code = 0 }
FNR == 1 && /^\/\/ / { print "/// \\file"; comment("", substr($0, 3)); next }
match($0, /^[ \t]*\/\/( |$)/) { indent = $0; sub(/\/\/.*/, "", indent); comment(indent, substr($0, length(indent) + 3)); next }
{ code = 0 }
/^ *(class|struct) [A-Za-z]+; +\/\/ / { sub(/ +\/\/ .*/, ""); print; next } # declared elsewhere
match($0, /[;,{}] +\/\/ /) && !/".*\/\/.*"/ {
  print substr($0, 1, RSTART + RLENGTH - 2) "/< " plain(substr($0, RSTART + RLENGTH))
  next
}
{ print }
