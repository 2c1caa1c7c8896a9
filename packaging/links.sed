# Links of the documentation to files that no package has lead to the repository.
s#\]\((\.\./)*(agent|compose|dashboards-src|deploy|internal|tests|CHANGELOG\.md|CONTRIBUTING\.md|SECURITY\.md)#](https://github.com/benchwatch/benchwatch/blob/main/\2#g
