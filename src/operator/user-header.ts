/** With this header, the operator's commands tell the log which of the machine's users runs them. It proves nothing. */
export const operatorUserHeader = "postrider-operator";
