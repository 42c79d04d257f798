{{- $all := slice -}}
{{- range site.RegularPages -}}
{{- $all = $all | append (dict "path" .RelPermalink "title" (partial "title.html" .) "text" (.Plain | htmlUnescape)) -}}
{{- end -}}
window.documents = {{ $all | jsonify }};
