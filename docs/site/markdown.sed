# Links that work in a Git web view, for Doxygen: a header has a page of its own, a source has none.
s#](\(\.\./\)*\(stages/[a-z0-9/_]*\.hpp\))#](@ref \2)#g
s#\[\([^]]*\)\](\(\.\./\)*stages/[a-z0-9/_]*\.cpp)#\1#g
