/** With this the commands of the operator say which user of the machine runs them, for the log. It proves nothing. */
export const operatorUserHeader = "postrider-operator";
